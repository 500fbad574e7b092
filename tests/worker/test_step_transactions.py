"""Steps that are transactions: what a handler writes and that it was written, both or neither."""

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from rota import ConfigError, Context, LeaseLost, Retry, Rota, State, Worker, WorkerConfig
from rota.model.settlement import released
from tests.fixtures.workers import records

if TYPE_CHECKING:
    from rota.app.job_steps import JobSteps

pytestmark = pytest.mark.both

INSERT = {"sqlite": "INSERT INTO effect VALUES (?)", "postgres": "INSERT INTO effect VALUES (%s)"}


def effects(app: Rota) -> list[int]:
    """What handlers have written."""
    with app.transaction() as tx:
        return sorted(row[0] for row in tx.execute("SELECT number FROM effect").fetchall())


def drain(app: Rota) -> None:
    Worker(app, WorkerConfig(drain=True)).run()


@pytest.fixture(autouse=True)
def table(app: Rota) -> None:
    """A table of the handlers'."""
    with app.transaction() as tx:
        tx.execute("CREATE TABLE effect (number integer)")


@pytest.fixture
def insert(app: Rota) -> str:
    """A statement of a handler's."""
    return INSERT[app.database.store.name]


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_written_once(app: Rota, insert: str, kind: str) -> None:
    """A later attempt leaves the block with its first use of the transaction, and has its value."""
    seen: list[Any] = []

    if kind == "async":

        @app.task(name="write")
        async def write(ctx: Context, number: int) -> None:
            async with ctx.step_transaction("book") as tx:
                seen.append(tx.done)
                await tx.aexecute(insert, [number])
                tx.result({"number": number})
                seen.append("written")
            seen.append(tx.value)
            if ctx.attempt < 3:
                raise Retry(after=0)
    else:

        @app.task(name="write")
        def write(ctx: Context, number: int) -> None:
            with ctx.step_transaction("book") as tx:
                seen.append(tx.done)
                tx.execute(insert, [number])
                tx.result({"number": number})
                seen.append("written")
            seen.append(tx.value)
            if ctx.attempt < 3:
                raise Retry(after=0)

    write.enqueue(7)
    drain(app)
    value = {"number": 7}
    assert effects(app) == [7]
    assert seen == [False, "written", value, True, value, True, value]


@pytest.mark.parametrize("times", [1, 3])
def test_a_failure_undoes_both(app: Rota, insert: str, times: int) -> None:
    """What was written in a block that failed is gone, and the step is not remembered."""

    @app.task(name="write")
    async def write(ctx: Context) -> None:
        async with ctx.step_transaction("book") as tx:
            for _ in range(times):
                await tx.aexecute(insert, [ctx.attempt])
            if ctx.attempt == 1:
                raise Retry(after=0)

    job = write.enqueue()
    drain(app)
    assert effects(app) == [2] * times
    assert [one.name for one in job.steps()] == ["book"]


def test_it_can_be_asked_first(app: Rota, insert: str) -> None:
    """A handler doing more in the block looks if it is done; two blocks of a name are two steps."""
    asked: list[bool] = []

    @app.task(name="write")
    async def write(ctx: Context) -> None:
        for number in (1, 2):
            async with ctx.step_transaction("book") as tx:
                asked.append(tx.done)
                if not tx.done:
                    await tx.aexecute(insert, [number])
        if ctx.attempt == 1:
            raise Retry(after=0)

    write.enqueue()
    drain(app)
    assert effects(app) == [1, 2]
    assert asked == [False, False, True, True]


def test_a_connection_of_the_handlers(app: Rota, insert: str) -> None:
    """Rota commits it, with the step."""

    def connect() -> Any:
        if app.database.store.name == "sqlite":
            return sqlite3.connect(app.url.removeprefix("sqlite:///"))
        return psycopg.connect(app.url)

    @app.task(name="write")
    def write(ctx: Context) -> None:
        with closing(connect()) as conn:
            with ctx.step_transaction("book", conn) as tx:
                tx.connection.execute(insert, [1])
            if ctx.attempt == 1:
                raise Retry(after=0)

    write.enqueue()
    drain(app)
    assert effects(app) == [1]


def test_a_job_that_was_taken_over(app: Rota, insert: str) -> None:
    """The fence refuses the step, and with it what was written."""
    told: list[str] = []

    def lose(ctx: Context) -> None:
        steps: JobSteps = ctx._remembering("step")
        holder = steps.completion
        app.database.store.run(app.database.store.settle(holder.session, [released(holder.job)]))

    @app.task(name="write")
    async def write(ctx: Context) -> None:
        # While a transaction writes to a file, nobody else does.
        beside = app.database.store.name == "postgres"
        try:
            if not beside:
                lose(ctx)
            async with ctx.step_transaction("book") as tx:
                await tx.aexecute(insert, [1])
                if beside:
                    lose(ctx)
        except LeaseLost as error:
            told.append(str(error))
            app.jobs.cancel(ctx.job_id)

    job = write.enqueue()
    drain(app)
    assert "nothing in this transaction was stored" in told[0]
    assert effects(app) == []
    assert job.steps() == []


def test_a_handler_that_commits_itself(app: Rota, insert: str) -> None:
    """The step is not remembered: what was committed apart may be written again, and that is said."""

    @app.task(name="write", max_attempts=1)
    def write(ctx: Context) -> None:
        with ctx.step_transaction("book") as tx:
            tx.execute(insert, [1])
            tx.connection.commit()

    job = write.enqueue()
    drain(app)
    [record] = records(app)
    assert record.state is State.DISCARDED
    assert record.errors[0].exception == "rota.errors.TransactionEnded"
    assert job.steps() == []


def test_steps_beside_it(app: Rota, insert: str) -> None:
    """Other steps may run meanwhile: the lease the job gets for the transaction is theirs, too."""

    async def nothing() -> None:
        await asyncio.sleep(0)

    @app.task(name="write")
    async def write(ctx: Context, number: int) -> None:
        async def book() -> None:
            async with ctx.step_transaction("book") as tx:
                # A file has one writer at a time.
                if app.database.store.name == "postgres":
                    await tx.aexecute(insert, [number])

        steps = [ctx.step(f"step {one}", nothing) for one in range(3)]
        await asyncio.gather(book(), *steps)

    jobs = [write.enqueue(number) for number in range(4)]
    drain(app)
    assert {job.status for job in jobs} == {State.COMPLETED}
    assert all(len(job.steps()) == 4 for job in jobs)
    assert all(not job.record().errors for job in jobs)


def test_outside_of_the_block(app: Rota) -> None:
    """The transaction is there in its block alone."""

    @app.task(name="write", max_attempts=1)
    async def write(ctx: Context) -> None:
        tx = ctx.step_transaction("book")
        await tx.aexecute("SELECT 1")

    job = write.enqueue()
    drain(app)
    assert job.record().errors[0].exception == f"rota.errors.{ConfigError.__name__}"
