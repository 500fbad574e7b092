"""PostgreSQL that crashes or ends connections: nothing acknowledged is lost, workers go on."""

import functools
import json
import random
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rota import State, StoreError, StoreUnavailable
from rota.measure.servers import PostgresServer
from rota.store.operation import Operation
from rota.store.postgres.at_once import Raw
from rota.store.postgres.connection import PostgresConnection
from tests.faults.processes import Ledger, until
from tests.fixtures.postgres import LOCKS
from tests.fixtures.workers import working

RESTARTS = 3


@pytest.fixture
def ledger(postgres_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """An app of the test's own."""
    with Ledger(tmp_path, postgres_url) as ledger:
        yield ledger


def test_crashes_under_load(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """Every acknowledged job completes though the server crashes again and again; no other twice."""
    url = postgres_server.create_database("crashes")
    acknowledged: list[int] = []
    unknown: list[int] = []
    stop = threading.Event()

    def produce(ledger: Ledger, first: int) -> None:
        number = first
        chance = random.Random(first)
        while not stop.is_set():
            numbers = range(number, number + chance.choice((1, 5, 300)))
            number = numbers.stop
            try:
                ledger.quick.using(max_attempts=50).enqueue_many({"number": n} for n in numbers)
            except StoreError:
                unknown.extend(numbers)
                stop.wait(0.02)
            else:
                acknowledged.extend(numbers)
                stop.wait(0.01)

    with Ledger(tmp_path, url) as ledger:
        workers = [ledger.worker(session_timeout=3.0) for _ in range(2)]
        producers = [
            threading.Thread(target=produce, args=(ledger, number * 10_000_000))
            for number in range(2)
        ]
        for producer in producers:
            producer.start()
        try:
            for _ in range(RESTARTS):
                ends = len(ledger.noted("end"))
                until(functools.partial(ledger.ended, ends + 300), "progress")
                postgres_server.restart(mode="immediate")
        finally:
            stop.set()
            for producer in producers:
                producer.join()
        until(lambda: not ledger.unfinished(), "everything to complete")
        numbers = [json.loads(job.args)["number"] for job in ledger.records(State.COMPLETED)]
        assert len(numbers) == len(set(numbers))
        assert set(acknowledged) <= set(numbers) <= {*acknowledged, *unknown}
        assert set(acknowledged) <= set(ledger.noted("end"))
        assert len(acknowledged) > 1000
        assert all(worker.alive for worker in workers)
        for worker in workers:
            assert "Traceback" not in worker.said


def test_an_outage_longer_than_a_session(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """No job is to blame: what ran at its beginning runs again, and no attempt is spent."""
    url = postgres_server.create_database("outage")
    with Ledger(tmp_path, url) as ledger:
        workers = [ledger.worker(queues=("long",), session_timeout=5.0) for _ in range(2)]
        ledger.patient.using(max_attempts=1).enqueue_many({"number": n} for n in range(40))
        until(lambda: len(ledger.noted("start")) >= 11, "both workers to have begun")
        with postgres_server.down():  # no crash, which may undo the claims
            until(lambda: all("is lost" in worker.said for worker in workers), "lost sessions")
        ledger.app.close()
        ledger.go()
        until(lambda: not ledger.unfinished(), "everything to complete")
        assert ledger.count(State.COMPLETED) == 40
        assert {job.attempt for job in ledger.records()} == {1}
        assert all(worker.alive for worker in workers)
        assert not any(" died: " in worker.said for worker in workers)


def test_ended_connections(ledger: Ledger) -> None:
    """A worker whose connections are ended, idle or busy, makes new ones and goes on."""
    worker = ledger.worker()
    with closing(psycopg.connect(ledger.url, autocommit=True)) as admin:

        def terminate() -> int:
            ledger.app.close()
            cursor = admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return len(cursor.fetchall())

        # Idle: among them is the connection that listens.
        listening = (
            f"SELECT count(*) FROM {LOCKS} WHERE locktype = 'advisory' AND classid = 7682001"
        )
        done = 0
        for _ in range(3):
            until(lambda: admin.execute(listening).fetchall() != [(0,)], "the worker to be idle")
            assert terminate() >= 1
            ledger.quick.enqueue_many({"number": done + number} for number in range(20))
            done += 20
            until(functools.partial(ledger.ended, done), "jobs to run")
        # Busy: in the middle of claims and settlements.
        more = 3000
        ledger.quick.using(max_attempts=50).enqueue_many(
            {"number": done + number} for number in range(more)
        )
        for part in range(1, 4):
            until(functools.partial(ledger.ended, done + part * more // 5), "progress")
            terminate()
        until(lambda: not ledger.unfinished(), "everything to complete")
    assert ledger.count(State.COMPLETED) == done + more
    assert set(ledger.noted("end")) == set(range(done + more))
    assert worker.alive
    assert "Traceback" not in worker.said


def test_a_claim_whose_answer_is_lost(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that a worker has claimed without learning of it run all the same, while it lives."""
    real = PostgresConnection._run
    lost: list[int] = []

    def run(self: PostgresConnection, raw: Raw, operation: Operation[Any]) -> Any:
        result = real(self, raw, operation)
        if operation.name == "take" and result and not lost:
            lost.append(len(result))
            self.close()
            raise StoreUnavailable("the answer was lost")
        return result

    monkeypatch.setattr(PostgresConnection, "_run", run)
    ledger.quick.enqueue_many({"number": number} for number in range(10))
    with working(ledger.app, session_timeout=1.0):
        until(lambda: lost, "a claim")
        until(lambda: not ledger.unfinished(), "the jobs to run", 6.0)
