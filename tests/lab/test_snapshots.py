"""What designs do whose advisory lock is had for a job that is gone by then.

A claim sees a job in its snapshot. Before it tries the job's lock, the job's worker deletes the job
and lets go of the lock.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from rota_lab.databases import Database
from rota_lab.queue import Queue, Trial
from rota_lab.strategy import Job
from tests.fixtures.workers import LONG, until
from tests.lab.bystander import Bystander, Hand

pytestmark = pytest.mark.postgres

GATE = """
    create function public.{name}({types}) returns boolean language plpgsql as $$
    begin
        perform pg_catalog.pg_advisory_lock_shared(-1);
        perform pg_catalog.pg_advisory_unlock_shared(-1);
        return pg_catalog.{name}({arguments});
    end
    $$
"""
"""What is called in place of PostgreSQL's own function: it passes a gate first."""


def make_gates(queue: Queue) -> None:
    """Set gates between the snapshot of a claim and its advisory lock."""
    with closing(queue.location.connect()) as db:
        xact = {"name": "pg_try_advisory_xact_lock", "types": "int, int", "arguments": "$1, $2"}
        session = {"name": "pg_try_advisory_lock", "types": "bigint", "arguments": "$1"}
        for lock in (xact, session):
            db.execute(GATE.format(**lock))
        [name] = db.rows("select current_database() as own")
        db.execute(f"alter database {name.own} set search_path = public, pg_catalog")


@contextmanager
def closed(queue: Queue) -> Iterator[None]:
    """No worker gets through the gates in the block."""
    with closing(queue.location.connect()) as db:
        db.rows("select pg_advisory_lock(-1)")
        yield


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("que", []),
        ("que-last-id", []),
        ("que-many", []),
        ("advisory-xact", []),
        ("advisory-xact-no-key", []),
        ("advisory-xact-alone", ["1"]),
    ],
)
def test_gone_when_the_lock_is_had(
    name: str, again: list[str], trial: Callable[..., Trial]
) -> None:
    """A worker that looks again before the work, or locks the row too, does not repeat it."""
    with trial(name, Database.POSTGRES).fresh() as queue, closing(Bystander(queue)) as bystander:
        make_gates(queue)
        queue.strategy.enqueue([Job("1")])
        first = Hand(queue, holds=True).start()
        assert first.at_work.wait(LONG)
        with closed(queue):
            second = Hand(queue).start()
            until(lambda: bystander.waiting() == 1, "the second worker at the gate")
            first.join()
            assert queue.strategy.left() == 0
        second.join()
    assert (first.worked, second.worked) == (["1"], again)
