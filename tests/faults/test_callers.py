"""What callers and middleware see of a worker that is killed in the middle of a job."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from rota import State
from tests.faults.processes import LONG, Ledger, WorkerProcess, until

TRIGGER = """
CREATE TABLE orders (id integer PRIMARY KEY);
CREATE FUNCTION enqueue_receipt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM rota.enqueue('app.stubborn', json_build_object('number', NEW.id), queue => 'long');
    RETURN NULL;
END
$$;
CREATE TRIGGER receipt AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION enqueue_receipt();
"""


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


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Ledger]:
    """The same on SQLite alone, for what does not depend on the store."""
    with Ledger(tmp_path, f"sqlite:///{tmp_path}/rota.db") as ledger:
        yield ledger


def worker(ledger: Ledger) -> WorkerProcess:
    """A worker that is soon missed."""
    return ledger.worker(queues=("long",), session_timeout=1.0)


def succeeded(ledger: Ledger, count: int) -> WorkerProcess:
    """Kill a worker that has started so many jobs; the one that has started them again."""
    victim = worker(ledger)
    until(lambda: len(ledger.lines("start")) == count, "the jobs to start")
    victim.signal(signal.SIGKILL)
    successor = worker(ledger)
    until(lambda: len(ledger.lines("start")) == 2 * count, "the jobs to be taken over")
    return successor


def test_waiting_while_the_worker_is_killed(ledger: Ledger) -> None:
    """Who waits goes on waiting, and gets the result of the attempt that has ended."""
    handle = ledger.stubborn.enqueue(0)
    with ThreadPoolExecutor(2) as pool:
        result = pool.submit(handle.result, LONG)
        record = pool.submit(handle.wait, LONG)
        successor = succeeded(ledger, 1)
        assert not result.done()
        assert not record.done()
        ledger.go(successor)
        assert result.result() == successor.pid
        found = record.result()
    assert (found.state, found.attempt) == (State.COMPLETED, 2)
    assert found.result == str(successor.pid)


def test_jobs_of_a_trigger(postgres: Ledger) -> None:
    """What SQL enqueues is rescued like any job, beside an old snapshot; what is undone never was."""
    ledger = postgres
    with (
        closing(psycopg.connect(ledger.url)) as caller,
        closing(psycopg.connect(ledger.url)) as old,
    ):
        caller.execute(TRIGGER)
        caller.execute("INSERT INTO orders VALUES (0)")
        caller.commit()
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("SELECT pg_current_xact_id(), count(*) FROM rota.lane")
        caller.execute("INSERT INTO orders VALUES (1)")
        caller.rollback()
        [first] = ledger.records()
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(ledger.app.job(first.id).result, LONG)
            successor = succeeded(ledger, 1)
            old.execute("INSERT INTO orders VALUES (2)")
            old.commit()
            ledger.go(successor)
            assert result.result() == successor.pid
    until(lambda: ledger.count(State.COMPLETED) == 2, "the job of the old transaction")
    assert {job.attempt for job in ledger.records()} == {1, 2}
    assert ledger.noted("start") == {0: 2, 2: 1}


def test_middleware_around_a_run_that_is_killed(sqlite: Ledger) -> None:
    """It begins anew with the next run; what it would have done after the killed one is not done."""
    ledger = sqlite
    ledger.say("around")
    ledger.hold("round")
    ledger.say("enough")
    ledger.patient.enqueue(number=0)
    ledger.crawl.enqueue(number=1)
    killed = worker(ledger)
    until(lambda: len(ledger.lines("start")) == 2, "the jobs to start")
    killed.signal(signal.SIGKILL)
    victim = killed.pid
    ledger.go()
    ledger.unhold("round")
    successor = worker(ledger)
    until(lambda: not ledger.unfinished(), "the jobs to end")
    for kind, numbers in (("", (0, 1)), ("thread-", (1,))):
        begun, ended = ledger.lines(f"{kind}enter"), ledger.lines(f"{kind}leave")
        runs = [(1, pid) for pid in sorted((victim, successor.pid))]
        assert sorted(begun) == [(number, *run) for number in numbers for run in runs]
        assert sorted(ended) == [(number, 1, successor.pid) for number in numbers]
    assert {job.attempt for job in ledger.records(State.COMPLETED)} == {1}
