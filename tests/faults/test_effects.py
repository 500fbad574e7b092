"""Effects exactly once: workers killed, frozen, and left with a prepared transaction.

Each handler writes a row beside its job's completion. However a worker ends, in the end there is
one row for each job, and each job is completed.
"""

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from rota import Limit, State, StoreError, Unique
from rota.cli.main import cli
from rota.measure.servers import PostgresServer
from tests.faults.processes import Ledger, WorkerProcess, until


@pytest.fixture
def ledger(store_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """An app of the test's own, and a table of its handlers'."""
    with Ledger(tmp_path, store_url) as ledger:
        with_table(ledger)
        yield ledger


@pytest.fixture
def postgres(postgres_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """The same on PostgreSQL alone."""
    with Ledger(tmp_path, postgres_url) as ledger:
        with_table(ledger)
        yield ledger


def with_table(ledger: Ledger) -> None:
    """Make the handlers' table. Nothing in it is unique: what happens twice is there twice."""
    with ledger.app.transaction() as tx:
        tx.execute("CREATE TABLE effect (number integer, pid integer)")


def effects(ledger: Ledger) -> list[tuple[int, int]]:
    """The rows: which job, written by which process."""
    with ledger.app.transaction() as tx:
        rows = tx.execute("SELECT number, pid FROM effect ORDER BY number, pid").fetchall()
        return [tuple(row) for row in rows]


def worker(ledger: Ledger) -> WorkerProcess:
    """A worker that is soon missed."""
    return worker_of(ledger, "effects")


def worker_of(ledger: Ledger, queue: str) -> WorkerProcess:
    """The same of another queue."""
    return ledger.worker(queues=(queue,), session_timeout=1.0, concurrency=4)


@pytest.mark.parametrize("where", ["written", "settled", "ended"])
def test_a_killed_worker(ledger: Ledger, where: str) -> None:
    """Killed before the block's end, between settlement and commit, or after: one effect each."""
    count = 3
    ledger.hold(where)
    ledger.charge.enqueue_many({"number": number} for number in range(count))
    victim = worker(ledger)
    until(lambda: ledger.noted(where), f"a handler to be {where}")
    if where == "ended":
        until(lambda: ledger.count(State.COMPLETED) == count, "all to be committed")
    victim.signal(signal.SIGKILL)
    ledger.unhold(where)
    successor = worker(ledger)
    until(lambda: not ledger.unfinished(), "the jobs to be taken over")
    found = effects(ledger)
    assert [number for number, _ in found] == list(range(count))
    assert {pid for _, pid in found} == {(victim if where == "ended" else successor).pid}
    assert {job.state for job in ledger.records()} == {State.COMPLETED}
    assert {job.attempt for job in ledger.records()} == {1}


@pytest.mark.parametrize("where", ["begun", "written"])
def test_a_frozen_worker(postgres: Ledger, where: str) -> None:
    """A worker that slept past its session's end cannot commit; its successor's effect stands.

    On PostgreSQL alone: frozen while it writes to a SQLite file, a process stops all others.
    """
    ledger = postgres
    ledger.hold(where)
    ledger.charge.enqueue(0)
    frozen = worker(ledger)
    until(lambda: ledger.noted(where), f"the handler to be {where}")
    frozen.signal(signal.SIGSTOP)
    ledger.unhold(where)
    successor = worker(ledger)
    until(lambda: not ledger.unfinished(), "the job to be taken over")
    frozen.signal(signal.SIGCONT)
    until(lambda: late(ledger), "the late transaction to be refused")
    assert effects(ledger) == [(0, successor.pid)]
    [job] = ledger.records()
    assert (job.state, job.attempt) == (State.COMPLETED, 2)
    ledger.charge.enqueue(1)
    until(lambda: not ledger.unfinished(), "more work")
    assert [number for number, _ in effects(ledger)] == [0, 1]
    assert late(ledger) == {0: 1}
    assert frozen.alive


def late(ledger: Ledger) -> Counter[int]:
    """The jobs whose transactions were refused, or had been ended by the server before."""
    return ledger.noted("refused") + ledger.noted("failed")


def test_frozen_between_settlement_and_commit(postgres: Ledger) -> None:
    """The server ends that transaction: the job is not stuck with it, and nobody else is."""
    ledger = postgres
    ledger.hold("settled")
    ledger.charge.enqueue(0)
    frozen = worker(ledger)
    until(lambda: ledger.noted("settled"), "the handler to have settled")
    frozen.signal(signal.SIGSTOP)
    ledger.unhold("settled")
    ledger.charge.enqueue(1)
    successor = worker(ledger)
    until(lambda: not ledger.unfinished(), "the jobs to be taken over")
    frozen.signal(signal.SIGCONT)
    until(lambda: late(ledger), "the late commit to fail")
    assert effects(ledger) == [(0, successor.pid), (1, successor.pid)]
    assert {job.state for job in ledger.records()} == {State.COMPLETED}


@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
def test_prepared_and_left(postgres_server: PostgresServer, tmp_path: Path, how: str) -> None:
    """Killed between prepare and commit, and the server crashes, too: whoever decides, decides both."""
    url = postgres_server.create_database("prepared")
    with Ledger(tmp_path, url) as ledger:
        with_table(ledger)
        ledger.hold("prepared")
        ledger.prepare.enqueue(0)
        victim = worker(ledger)
        until(lambda: ledger.noted("prepared"), "the handler to have prepared")
        victim.signal(signal.SIGKILL)
        postgres_server.restart(mode="immediate")
        ledger.app.close()
        ledger.unhold("prepared")
        # It keeps nobody from working, nor from being taken over.
        ledger.hold("begun")
        ledger.charge.enqueue_many([(1,), (2,)])
        second = worker(ledger)
        until(lambda: len(ledger.noted("begun")) == 2, "two more to begin")
        second.signal(signal.SIGKILL)
        ledger.unhold("begun")
        successor = worker(ledger)
        until(lambda: ledger.unfinished() == 1, "the others to be taken over")
        assert effects(ledger) == [(1, successor.pid), (2, successor.pid)]
        [running] = ledger.records(State.RUNNING)
        said = CliRunner().invoke(cli, ["doctor", "--url", url]).output
        assert "Prepared transaction 'rota 0'" in said
        assert "ROLLBACK PREPARED 'rota 0';" in said
        assert "COMMIT PREPARED 'rota 0'" in said
        with closing(psycopg.connect(url, autocommit=True)) as operator:
            operator.execute(f"{how} PREPARED 'rota 0'".encode())
        until(lambda: not ledger.unfinished(), "the decision to be seen")
        found = effects(ledger)
        assert [number for number, _ in found] == [0, 1, 2]
        assert found[0][1] == (victim if how == "COMMIT" else successor).pid
        records = {job.id: job for job in ledger.records()}
        assert {job.state for job in records.values()} == {State.COMPLETED}
        assert records[running.id].attempt == (1 if how == "COMMIT" else 2)
        assert ledger.noted("start")[0] == (1 if how == "COMMIT" else 2)


@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
def test_prepared_by_a_worker_that_goes_on(postgres: Ledger, how: str) -> None:
    """The coordinator decides while the handler still runs; the worker finds out by itself."""
    ledger = postgres
    ledger.hold("prepared")
    ledger.prepare.enqueue(0)
    one = worker(ledger)
    until(lambda: ledger.noted("prepared"), "the handler to have prepared")
    with closing(psycopg.connect(ledger.url, autocommit=True)) as operator:
        operator.execute(f"{how} PREPARED 'rota 0'".encode())
    ledger.unhold("prepared")  # its own COMMIT PREPARED fails
    until(lambda: not ledger.unfinished(), "the worker to find out")
    assert effects(ledger) == [(0, one.pid)]
    [job] = ledger.records()
    assert (job.state, job.attempt) == (State.COMPLETED, 1 if how == "COMMIT" else 2)


def test_two_phases_in_order(postgres: Ledger) -> None:
    """Without any fault each job is completed by its own COMMIT PREPARED, beside one another."""
    ledger = postgres
    ledger.prepare.enqueue_many([(number,) for number in range(12)])
    worker(ledger)
    until(lambda: not ledger.unfinished(), "the jobs to be done")
    assert [number for number, _ in effects(ledger)] == list(range(12))
    assert {job.attempt for job in ledger.records(State.COMPLETED)} == {1}


def test_two_phases_with_keys_and_a_limit(postgres: Ledger) -> None:
    """One after the other from start to COMMIT PREPARED, and all keys are free in the end."""
    ledger = postgres
    numbers = range(100, 104)
    prepare = ledger.prepare.using(
        unique=Unique(by=("number",)), limit=Limit("bank", running=1), max_attempts=1
    )
    prepare.enqueue_many([(number,) for number in numbers])
    ledger.hold("prepared")
    worker(ledger)
    until(lambda: ledger.noted("prepared"), "the first to have prepared")
    [busy] = ledger.noted("prepared")
    with closing(psycopg.connect(ledger.url)) as caller:
        # Who asks for its key now has to wait for the decision.
        caller.execute("SET statement_timeout = '50ms'")
        with pytest.raises(StoreError, match="statement timeout"):
            prepare.using(conn=caller).enqueue(busy)
    assert ledger.count(State.AVAILABLE) == 3
    ledger.unhold("prepared")
    until(lambda: not ledger.unfinished(), "the jobs to be done")
    assert [number for number, _ in effects(ledger)] == list(numbers)
    text = (ledger.folder / "ledger").read_text(encoding="ascii")
    said = [line.split()[0] for line in text.splitlines() if not line.startswith("prepared")]
    assert said == ["start", "end"] * 4
    assert {job.state for job in ledger.records()} == {State.COMPLETED}
    placed = prepare.using(delay=3600).enqueue_many([(number,) for number in numbers])
    assert len(placed.created) == 4
