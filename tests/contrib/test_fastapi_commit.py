"""When the request's transaction is committed: before the answer, or too late."""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from rota import Rota
from rota.contrib.starlette import web_lifespan
from tests.cli.calling import answer

TABLES = (
    "CREATE TABLE customers (id integer PRIMARY KEY)",
    "CREATE TABLE orders (customer integer REFERENCES customers DEFERRABLE INITIALLY DEFERRED)",
)
UNKNOWN = text("INSERT INTO orders VALUES (4711)")
"""What the database refuses at the commit: there is no such customer."""


def strict(engine: Engine) -> None:
    """Let SQLite look at references."""
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA foreign_keys = ON"))


@pytest.fixture
def engine(store: object, store_url: str) -> Iterator[Engine]:
    """An engine on a database with Rota's tables and the service's."""
    del store
    url = store_url.replace("postgresql:", "postgresql+psycopg:")
    engine = create_engine(url, poolclass=NullPool)
    strict(engine)
    with engine.begin() as connection:
        for statement in TABLES:
            connection.execute(text(statement))
    yield engine
    engine.dispose()


@pytest.fixture
def async_engine(engine: Engine, store_url: str) -> AsyncEngine:
    """An async one on the same database."""
    del engine  # it made the tables
    schemes = {"postgresql:": "postgresql+psycopg:", "sqlite:": "sqlite+aiosqlite:"}
    [scheme] = [scheme for scheme in schemes if store_url.startswith(scheme)]
    url = store_url.replace(scheme, schemes[scheme], 1)
    made = create_async_engine(url, poolclass=NullPool)
    strict(made.sync_engine)
    return made


@pytest.fixture
def service(engine: Engine, async_engine: AsyncEngine, store_url: str) -> Iterator[TestClient]:
    """A service that takes an order of an unknown customer in several ways."""
    rota = Rota(store_url)
    app = FastAPI(lifespan=web_lifespan(rota))

    @rota.task(name="pack")
    def pack() -> None: ...

    def committing() -> Iterator[Session]:
        with Session(engine) as session:
            yield session
            session.commit()

    def opened() -> Iterator[Session]:
        with Session(engine) as session:
            yield session

    async def opened_async() -> AsyncIterator[AsyncSession]:
        async with AsyncSession(async_engine) as session:
            yield session

    @app.post("/after")
    def after(session: Annotated[Session, Depends(committing)]) -> str:
        session.execute(UNKNOWN)
        pack.using(conn=session).enqueue()
        return "stored"

    @app.post("/function")
    def function(session: Annotated[Session, Depends(committing, scope="function")]) -> str:
        session.execute(UNKNOWN)
        pack.using(conn=session).enqueue()
        return "stored"

    @app.post("/block")
    def block(session: Annotated[Session, Depends(opened)]) -> str:
        with session.begin():
            session.execute(UNKNOWN)
            pack.using(conn=session).enqueue()
        return "stored"

    @app.post("/async-block")
    async def async_block(session: Annotated[AsyncSession, Depends(opened_async)]) -> str:
        async with session.begin():
            await session.execute(UNKNOWN)
            await pack.using(conn=session).aenqueue()
        return "stored"

    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def jobs(url: str) -> list[Any]:
    """The jobs that are stored."""
    found: list[Any] = answer("jobs", "list", url=url)["jobs"]
    return found


def test_the_trap(service: TestClient, store_url: str) -> None:
    """A commit after a dependency's `yield` comes after the answer.

    It fails, and the client is told "stored".
    """
    answered = service.post("/after")
    assert (answered.status_code, answered.json()) == (200, "stored")
    assert jobs(store_url) == []


@pytest.mark.parametrize("path", ["/block", "/async-block", "/function"])
def test_the_ways_out(service: TestClient, store_url: str, path: str) -> None:
    """A commit in the endpoint, or a dependency of `scope="function"`, fails before the answer."""
    assert service.post(path).status_code == 500
    assert jobs(store_url) == []
