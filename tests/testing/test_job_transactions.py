"""What attempts leave behind in the test's transaction: savepoints, job transactions, crashes."""

import logging
from typing import Any

import pytest

from rota import (
    ConfigError,
    Context,
    Rota,
    Snooze,
    State,
)
from rota.testing import Kit
from tests.testing.conftest import notes, write

pytestmark = pytest.mark.usefixtures("note_table")


def test_a_failing_handler_leaves_the_connection_usable(kit: Kit, app: Rota, conn: Any) -> None:
    """The attempt is undone, also one that the database refused; its error is raised, and kept."""

    @app.task(name="fail")
    def fail() -> None:
        write(conn, "half")
        conn.execute("SELECT * FROM nothing")

    handle = fail.enqueue()
    write(conn, "before")
    with pytest.raises(Exception, match="nothing") as raised:
        kit.drain()
    assert not isinstance(raised.value, ConfigError)
    assert notes(conn) == ["before"]
    record = handle.record()
    assert (record.state, len(record.errors)) == (State.RETRYABLE, 1)
    assert "nothing" in record.errors[0].message


def test_an_outcome_keeps_what_was_written(kit: Kit, app: Rota, conn: Any) -> None:
    """A handler that snoozes has not failed."""

    @app.task(name="poll")
    def poll() -> None:
        write(conn, "looked")
        raise Snooze(60)

    poll.enqueue()
    kit.drain()
    assert notes(conn) == ["looked"]


def test_a_crash_runs_the_handler_twice(kit: Kit, app: Rota, conn: Any) -> None:
    """Before it is settled the lease is lost, and the job runs again: what it did is there twice."""

    @app.task(name="careless")
    def careless() -> None:
        write(conn, "careless")

    @app.task(name="careful")
    def careful(ctx: Context) -> None:
        with ctx.transaction() as tx:
            tx.execute("INSERT INTO note (text) VALUES ('careful')")

    careless.enqueue()
    careful.enqueue()
    ran = kit.drain(crash="before_settle")
    assert ran.completed == 2
    assert {run.attempt for run in ran} == {1}
    assert notes(conn) == ["careful", "careless", "careless"]


def test_a_job_transaction_is_a_savepoint(kit: Kit, app: Rota, conn: Any) -> None:
    """`ctx.transaction()` completes the job with what was written; an error in its block undoes both."""

    @app.task(name="ship", store_result=True)
    def ship(ctx: Context, order: int) -> int | None:
        with ctx.transaction(conn if order % 2 else None) as tx:
            tx.execute(f"INSERT INTO note (text) VALUES ('{order}')")
            if order > 2:
                raise ValueError(order)
            tx.result(order)
        return None

    handles = [ship.enqueue(order) for order in (1, 2, 3, 4)]
    ran = kit.drain(raises=False)
    assert (ran.completed, ran.retried) == (2, 2)
    assert notes(conn) == ["1", "2"]
    assert [run.result for run in ran] == [1, 2, None, None]
    assert [handle.status for handle in handles] == [State.COMPLETED] * 2 + [State.RETRYABLE] * 2


def test_an_error_after_the_job_transaction(
    kit: Kit, app: Rota, conn: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The job is completed, whatever its handler does after that."""

    @app.task(name="ship")
    def ship(ctx: Context) -> None:
        with ctx.transaction() as tx:
            tx.execute("INSERT INTO note (text) VALUES ('done')")
        raise ValueError

    handle = ship.enqueue()
    caplog.set_level(logging.CRITICAL)
    assert kit.drain(raises=False).completed == 1
    assert (notes(conn), handle.status) == (["done"], State.COMPLETED)


def test_a_handler_that_commits(kit: Kit, app: Rota, conn: Any) -> None:
    """Code that ends the test's transaction is told so."""

    @app.task(name="commit")
    def commit() -> None:
        conn.rollback()

    commit.enqueue()
    with pytest.raises(ConfigError, match="has ended the test's transaction"):
        kit.drain()
