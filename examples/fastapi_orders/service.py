"""A service that takes orders: `uvicorn fastapi_orders.service:app`."""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field
from sqlalchemy.ext.asyncio import AsyncSession

from rota import JobHandle, JobNotFound, JobRecord
from rota.contrib.starlette import web_lifespan

from .jobs import pack, rota
from .tables import Base, Order, engine, sessions


@contextlib.asynccontextmanager
async def own_lifespan(_: FastAPI) -> AsyncIterator[None]:
    """The service's own: its table, and at the end its connections."""
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)  # in earnest: Alembic
    yield
    await engine.dispose()


app = FastAPI(lifespan=web_lifespan(rota, then=own_lifespan))


async def open_session() -> AsyncIterator[AsyncSession]:
    """A session for one request. It is closed after the response, and commits nothing then."""
    async with sessions() as session:
        yield session


async def find_job(job: int) -> JobHandle[Any]:
    """The job of a path, if it exists."""
    handle: JobHandle[Any] = rota.job(job)
    try:
        await handle.astatus()
    except JobNotFound as error:
        raise HTTPException(404, str(error)) from error
    return handle


Session = Annotated[AsyncSession, Depends(open_session)]
Job = Annotated[JobHandle[Any], Depends(find_job)]


class NewOrder(BaseModel):
    """What a customer sends."""

    customer: str = Field(min_length=1)
    items: int = Field(ge=1, le=100)


class Accepted(BaseModel):
    """An order that is stored, and the job that packs it."""

    order: int
    job: int


class JobView(BaseModel):
    """A job as customers may see it."""

    id: int
    state: str
    progress: float
    message: str
    result: Any = None

    @classmethod
    def of(cls, record: JobRecord) -> "JobView":
        """The view of a job."""
        told = record.progress
        return cls(
            id=record.id,
            state=record.state,
            progress=told.fraction if told else 0,
            message=told.message if told else "",
            result=None if record.result is None else json.loads(record.result),
        )


@app.post("/orders", status_code=201)
async def take_order(new: NewOrder, session: Session) -> Accepted:
    """Store the order and its job in one transaction, which is over before the answer goes out."""
    async with session.begin():
        order = Order(customer=new.customer, items=new.items)
        session.add(order)
        await session.flush()
        job = await pack.using(conn=session).aenqueue(order.id, new.items)
    return Accepted(order=order.id, job=job.id)


@app.get("/jobs/{job}")
async def show_job(job: Job) -> JobView:
    """How the job is, and what it returned."""
    return JobView.of(await job.arecord())


@app.get("/jobs/{job}/events", response_class=EventSourceResponse)
async def follow_job(job: Job) -> AsyncIterator[ServerSentEvent]:
    """The changes of the job, until it has finished."""
    async for change in job.changes():
        event = "finished" if change.record.state.finished else "change"
        yield ServerSentEvent(event=event, data=JobView.of(change.record))
