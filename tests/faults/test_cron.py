"""Cron entries while workers die: exactly one job for each due time."""

import functools
import json
import signal
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from tests.faults.processes import Ledger, until
from tests.fixtures.postgres import LOCKS

EVERY_SECOND = "* * * * * *"


@pytest.fixture
def ledger(store_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """An app of the test's own."""
    with Ledger(tmp_path, store_url) as ledger:
        yield ledger


@pytest.fixture
def postgres(postgres_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """The same on PostgreSQL alone."""
    with Ledger(tmp_path, postgres_url) as ledger:
        yield ledger


def made(ledger: Ledger, count: int) -> bool:
    """Whether so many jobs were made."""
    return len(ledger.records()) >= count


def check(ledger: Ledger) -> list[datetime]:
    """One job for each second from the first one on, whatever happened; the due times."""
    found = [datetime.fromisoformat(json.loads(job.args)["at"]) for job in ledger.records()]
    due = sorted(found)
    assert due == [due[0] + timedelta(seconds=number) for number in range(len(due))]
    return due


def test_workers_that_are_killed(ledger: Ledger) -> None:
    """Whoever dies at whatever moment, no due time is lost and none has two jobs."""
    ledger.app.cron.add("tick", EVERY_SECOND, ledger.tick, due="at", missed="all")
    survivor = ledger.worker(session_timeout=1.0)
    for number in range(1, 4):
        victim = ledger.worker(session_timeout=1.0)
        until(functools.partial(made, ledger, 2 * number), "jobs to be made")
        victim.signal(signal.SIGKILL)
    count = len(ledger.records())
    until(lambda: len(ledger.records()) >= count + 2, "the survivor to go on")
    ledger.app.cron.pause("tick")
    until(lambda: not ledger.unfinished(), "all jobs to end")
    assert survivor.alive
    due = check(ledger)
    assert set(ledger.noted("end")) == {int(one.timestamp()) for one in due}


def test_all_workers_are_away(ledger: Ledger) -> None:
    """What came due meanwhile is made when one is back."""
    ledger.app.cron.add("tick", EVERY_SECOND, ledger.tick, due="at", missed="all")
    worker = ledger.worker(session_timeout=1.0)
    until(ledger.records, "a job to be made")
    worker.signal(signal.SIGKILL)
    worker.end()
    count = len(ledger.records())
    due = ledger.app.cron.entries()[0].due
    assert due is not None
    until(lambda: datetime.now(due.tzinfo) > due + timedelta(seconds=2), "some time to pass")
    assert len(ledger.records()) == count
    ledger.worker(session_timeout=1.0)
    until(lambda: len(ledger.records()) >= count + 3, "the missed jobs to be made")
    ledger.app.cron.pause("tick")
    check(ledger)


def test_killed_between_taking_the_entry_and_the_commit(postgres: Ledger) -> None:
    """The jobs of the one that dies are gone with it; another worker makes them."""
    ledger = postgres
    with closing(psycopg.connect(ledger.url)) as holder:
        ledger.app.cron.add("tick", EVERY_SECOND, ledger.tick, due="at", missed="all")
        # Who makes jobs has the entry and has appended them when it waits here.
        holder.execute("LOCK TABLE rota.cron_mark IN SHARE MODE")
        victim = ledger.worker()
        waiting = (
            f"SELECT count(*) FROM {LOCKS}"
            " WHERE NOT granted AND relation = 'rota.cron_mark'::regclass"
        )
        until(lambda: holder.execute(waiting).fetchone() == (1,), "the victim to wait")
        other = ledger.worker()
        assert ledger.records() == []
        victim.signal(signal.SIGKILL)
        victim.end()
        holder.rollback()
    until(lambda: len(ledger.records()) >= 3, "the other one to make the jobs")
    ledger.app.cron.pause("tick")
    until(lambda: not ledger.unfinished(), "all jobs to end")
    assert other.alive
    assert len(check(ledger)) == len(ledger.noted("end"))
    assert max(ledger.noted("start").values()) == 1
