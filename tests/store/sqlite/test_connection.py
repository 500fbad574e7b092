"""What is SQLite's alone: the file, its locks, several processes, and forks."""

import multiprocessing
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest

from rota.errors import SchemaMissing, StoreError, StoreUnavailable
from rota.model.job import Order
from rota.model.states import State
from rota.store.migrate import migrate
from rota.store.operation import Begin, Stepped, Steps
from rota.store.sqlite.connection import SqliteConnection
from rota.store.sqlite.failures import busy
from rota.store.sqlite.gate import Gate
from rota.store.sqlite.statements import sql
from rota.store.sqlite.store import SqliteStore
from tests.store.factories import (
    claim,
    enqueue,
    open_session,
    rescued,
    run_inside,
    spec_of,
    states,
    until,
)

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database file that is up to date."""
    path = tmp_path / "rota.db"
    store = SqliteStore(path)
    with closing(store.connect()) as connection:
        migrate(store, connection)
    return path


@pytest.fixture
def store(file: Path) -> SqliteStore:
    """A store that does not wait long for locks."""
    return SqliteStore(file, patience=0.1)


@pytest.fixture
def connection(store: SqliteStore) -> Iterator[SqliteConnection]:
    """A connection of the store."""
    with closing(store.connect()) as connection:
        yield connection


# A caller's own connection ---------------------------------------------------------------------


@pytest.mark.parametrize("isolation", [None, "DEFERRED", "IMMEDIATE"])
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_callers_connection(
    store: SqliteStore, connection: SqliteConnection, isolation: str | None, end: str
) -> None:
    """Jobs and the caller's own rows come and go together, on a plain connection."""
    with closing(sqlite3.connect(store.path, isolation_level=isolation)) as own:  # type: ignore[arg-type]
        own.execute("CREATE TABLE purchase (number INTEGER)")
        own.commit()
        if isolation is None:
            own.execute("BEGIN")
        own.execute("INSERT INTO purchase VALUES (42)")
        operation = store.enqueue(Order(spec_of(delay=None), ["[42]"]))
        [job] = run_inside(store, Plain(own), operation)
        assert own.in_transaction
        assert connection.run(store.get([job])) == []
        getattr(own, end)()
        purchases = own.execute("SELECT * FROM purchase").fetchall()
    found = connection.run(store.get([job]))
    assert [job.args for job in found] == (["[42]"] if end == "commit" else [])
    assert purchases == ([(42,)] if end == "commit" else [])


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_enqueue_begins_the_callers_transaction(
    store: SqliteStore, connection: SqliteConnection, end: str
) -> None:
    """On a connection as `sqlite3` makes it, an enqueue waits for the commit like any INSERT."""
    enqueue(store, connection)
    for statement in ("enqueue/enqueue", "enqueue/enqueue_one", "counters/count"):
        assert sql(statement).text.startswith("INSERT ")
    with closing(sqlite3.connect(store.path)) as own:
        assert not own.in_transaction
        [job] = run_inside(store, Plain(own), store.enqueue(Order(spec_of(), ["1"])))
        assert own.in_transaction
        getattr(own, end)()
    assert len(connection.run(store.get([job]))) == (1 if end == "commit" else 0)


def test_a_callers_rows_may_be_dictionaries_of_sorts(store: SqliteStore) -> None:
    """A row factory of the caller's does not disturb."""
    with closing(sqlite3.connect(store.path)) as own:
        own.row_factory = sqlite3.Row
        jobs = run_inside(store, Plain(own), store.enqueue(Order(spec_of(), ["1", "2"])))
        own.commit()
        assert len(own.execute("SELECT id FROM rota_job").fetchall()) == len(jobs) == 2


class Plain:
    """A caller's connection, dressed up as what `run_inside` takes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection: object = connection

    def tune(self) -> None:
        """Nothing has to be set."""

    def commit(self) -> None:
        """Nothing: the caller does that."""

    def rollback(self) -> None:
        """Nothing: the caller does that."""


# Locks ----------------------------------------------------------------------------------------


def test_a_lock_that_is_held_for_long(store: SqliteStore, connection: SqliteConnection) -> None:
    """A writer that waits in vain is told what to look for, and reading goes on meanwhile."""
    jobs = enqueue(store, connection)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked for too long") as caught:
            enqueue(store, connection)
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        assert str(store.path) in str(caught.value)
        assert states(store, connection, jobs) == [State.AVAILABLE]
        foreign.execute("ROLLBACK")
    assert len(enqueue(store, connection)) == 1


def test_a_lock_that_is_released_in_time(file: Path) -> None:
    """A writer waits for another one and then gets its turn."""
    store = SqliteStore(file)
    holding = threading.Event()
    release = threading.Event()

    def hold() -> None:
        transaction = store.transaction()
        holding.set()
        release.wait()
        transaction.commit()

    holder = threading.Thread(target=hold)
    holder.start()
    holding.wait()
    with closing(store.connect()) as connection:
        waiting = threading.Thread(target=lambda: enqueue(store, connection))
        waiting.start()
        assert waiting.is_alive()
        release.set()
        waiting.join(20)
        assert not waiting.is_alive()
        holder.join()
        [queue] = connection.run(store.queues())
        assert queue.counts == {State.AVAILABLE: 1}
    store.close()


def test_a_transaction_has_the_file_from_its_beginning(store: SqliteStore) -> None:
    """It need not wait later, in the middle of its work."""
    transaction = store.transaction()
    with (
        closing(sqlite3.connect(store.path, timeout=0, isolation_level=None)) as foreign,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        foreign.execute("BEGIN IMMEDIATE")
    transaction.rollback()
    store.close()


def test_a_lock_of_another_program(
    store: SqliteStore, connection: SqliteConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for, too, though such a program knows of no gate."""
    tried = threading.Event()

    def told(error: sqlite3.Error) -> bool:
        tried.set()
        return busy(error)

    monkeypatch.setattr("rota.store.sqlite.connection.busy", told)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        waiting = threading.Thread(target=lambda: enqueue(store, connection))
        waiting.start()
        assert tried.wait(5)
        foreign.execute("ROLLBACK")
    waiting.join(20)
    with closing(store.connect()) as other:
        [queue] = other.run(store.queues())
    assert queue.counts == {State.AVAILABLE: 1}


def test_a_long_transaction_kills_no_worker(
    store: SqliteStore, connection: SqliteConnection
) -> None:
    """Workers that could not renew because of another writer are not taken for dead."""
    session = open_session(store, connection, timeout=0.05)
    [job] = enqueue(store, connection)
    claim(store, connection, session)
    begun = monotonic()
    transaction = store.transaction()
    until(lambda: True if monotonic() - begun > 0.2 else None)
    transaction.commit()
    assert connection.run(store.rescue()) == []
    assert connection.run(store.renew(session)).alive
    assert connection.run(store.rescue()) == []
    assert states(store, connection, [job]) == [State.RUNNING]
    # This time it is the worker that is silent.
    assert rescued(store, connection, session).available == (job,)
    store.close()


def test_a_clock_that_was_set_back(store: SqliteStore, connection: SqliteConnection) -> None:
    """A sign of life from the future is none: a dead worker is still missed, but no living one."""
    dead = open_session(store, connection, timeout=0.05)
    [job] = enqueue(store, connection)
    claim(store, connection, dead)
    living = open_session(store, connection, timeout=600.0)
    assert connection.run(store.rescue()) == []
    with closing(sqlite3.connect(store.path)) as foreign:
        foreign.execute("UPDATE rota_session SET renewed_at = renewed_at + 3600, silent_at = NULL")
        foreign.commit()
    assert rescued(store, connection, dead).available == (job,)
    assert connection.run(store.renew(living)).alive
    with closing(sqlite3.connect(store.path)) as foreign:
        noted = "SELECT silent_at FROM rota_session WHERE id = ?"
        assert foreign.execute(noted, [living]).fetchone() == (None,)
    store.close()


def test_correctness_does_not_depend_on_the_gate(
    store: SqliteStore, connection: SqliteConnection
) -> None:
    """A process that stands in the gate for ever holds others up only a little."""
    gate = Gate(store.path)
    gate.enter()
    assert gate.held
    assert len(enqueue(store, connection, 1)) == 1
    assert len(enqueue(store, connection, 1)) == 1
    gate.close()
    assert len(enqueue(store, connection, 1)) == 1


def test_the_gate_lets_one_through(store: SqliteStore) -> None:
    """Of two writers at the gate one waits; when the first has left, the other may pass."""
    one, two = Gate(store.path), Gate(store.path)
    one.enter()
    two.enter()
    assert (one.held, two.held) == (True, False)
    one.leave()
    two.enter()
    assert two.held
    two.close()
    one.close()


def test_what_is_prepared_holds_up_no_writer(connection: SqliteConnection) -> None:
    """An operation takes its turn only when it has something to ask."""
    held: list[bool] = []

    def steps(count: int) -> Steps[int]:
        for _ in range(count):
            held.append(connection._gate.held)
            yield sql("settle/changes")()
        return count

    for count in range(3):
        assert connection.run(Stepped("look", steps(count), Begin.HASTY)) == count
    assert held == [False, False, True]


def test_no_gate_where_no_file_can_be_made(tmp_path: Path) -> None:
    """Without a lock file one goes on without a gate."""
    gate = Gate(str(tmp_path / "missing" / "rota.db"))
    gate.enter()
    assert not gate.held
    gate.leave()
    gate.close()


# Several processes ------------------------------------------------------------------------------


def drain(path: str, start: "multiprocessing.synchronize.Barrier", done: str) -> None:
    """A process that claims and completes jobs one by one until there are none."""
    store = SqliteStore(path)
    count = 0
    with closing(store.connect()) as connection:
        session = open_session(store, connection)
        start.wait()
        while claim(store, connection, session, 1):
            enqueue(store, connection, queue="out")
            count += 1
    Path(done).write_text(str(count), encoding="utf-8")


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_take_fair_turns(file: Path, tmp_path: Path, processes: int) -> None:
    """Several processes that write all the time get a share each, and none an error."""
    jobs = 1200
    store = SqliteStore(file)
    with closing(store.connect()) as connection:
        enqueue(store, connection, jobs)
        start = SPAWN.Barrier(processes)
        workers = [
            SPAWN.Process(target=drain, args=(str(file), start, str(tmp_path / f"done-{number}")))
            for number in range(processes)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            assert worker.exitcode == 0
        shares = [int((tmp_path / f"done-{number}").read_text()) for number in range(processes)]
        assert sum(shares) == jobs
        assert min(shares) > jobs / processes / 4, shares
        counts = {queue.name: queue.counts for queue in connection.run(store.queues())}
        assert counts == {"default": {State.RUNNING: jobs}, "out": {State.AVAILABLE: jobs}}


KILLED = """
import sys, time
from rota.model.job import JobSpec, Order
from rota.store.execute import drive
from rota.store.sqlite.store import SqliteStore
store = SqliteStore(sys.argv[1])
transaction = store.transaction()
execute = lambda request: transaction.connection.execute(
    request.statement.text, request.params).fetchall()
jobs = drive(store.enqueue(Order(JobSpec("lost"), ["1"] * 20_000)).steps, execute)
print(len(jobs), flush=True)
time.sleep(60)
"""


def test_a_process_killed_in_a_transaction(file: Path) -> None:
    """What a killed process had not committed is gone, and neither lock nor gate stays shut."""
    store = SqliteStore(file)
    with closing(store.connect()) as connection:
        before = enqueue(store, connection, 3)
        command = [sys.executable, "-c", KILLED, str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
            assert victim.stdout is not None
            assert victim.stdout.readline() == "20000\n"
            victim.send_signal(signal.SIGKILL)
        after = enqueue(store, connection, 3)
        session = open_session(store, connection)
        assert [job.id for job in claim(store, connection, session)] == before + after
    with closing(sqlite3.connect(file)) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_forked_child_uses_a_connection_of_its_own(
    store: SqliteStore, connection: SqliteConnection
) -> None:
    """A child that goes on with its parent's connection harms neither of them."""
    before = enqueue(store, connection)
    transaction = store.transaction()
    transaction.rollback()
    inherited = connection.database()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            enqueue(store, connection)
            assert connection.database() is not inherited
            store.transaction().commit()
            connection.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    after = enqueue(store, connection)
    session = open_session(store, connection)
    got = [job.id for job in claim(store, connection, session)]
    assert got == [*before, before[0] + 1, *after]
    store.close()


# The file ---------------------------------------------------------------------------------------


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    """The message names the file that cannot be opened."""
    store = SqliteStore(tmp_path / "missing" / "rota.db")
    with (
        closing(store.connect()) as connection,
        pytest.raises(StoreUnavailable, match=r"missing.rota\.db cannot be opened"),
    ):
        enqueue(store, connection)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """A file of another kind is named and left alone."""
    path = tmp_path / "notes.txt"
    text = "no database " * 100
    path.write_text(text)
    store = SqliteStore(path)
    with (
        closing(store.connect()) as connection,
        pytest.raises(StoreError, match="not a SQLite database"),
    ):
        connection.run(store.schema_version())
    assert path.read_text() == text


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_is_read_only(file: Path) -> None:
    """Writing to a read-only file says so."""
    file.chmod(stat.S_IREAD)
    file.parent.chmod(stat.S_IREAD | stat.S_IEXEC)
    store = SqliteStore(file)
    try:
        with closing(store.connect()) as connection, pytest.raises(StoreError):
            enqueue(store, connection)
    finally:
        file.parent.chmod(stat.S_IRWXU)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_deleted_while_in_use(
    file: Path,
    tmp_path: Path,
    replaced: bool,  # noqa: FBT001
) -> None:
    """Nothing is written to a file that cannot be found any more; then a new one is begun."""
    store = SqliteStore(file)
    with closing(store.connect()) as connection:
        enqueue(store, connection)
        copy = tmp_path / "copy.db"
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        for left in tmp_path.glob("rota.db*"):
            left.unlink()
        if replaced:
            shutil.move(copy, file)
        with pytest.raises(StoreUnavailable, match="deleted or replaced"):
            enqueue(store, connection)
        if replaced:
            assert len(enqueue(store, connection)) == 1
        else:
            with pytest.raises(SchemaMissing):
                enqueue(store, connection)


def test_a_full_disk(store: SqliteStore, connection: SqliteConnection) -> None:
    """Where there is no space left, the enqueue fails as a whole, and works again later."""
    jobs = enqueue(store, connection)
    database = connection.database()
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreUnavailable, match="no space is left"):
        enqueue(store, connection, 10_000)
    assert len(enqueue(store, connection)) == 1
    session = open_session(store, connection)
    assert len(claim(store, connection, session)) == len(jobs) + 1


def test_a_transaction_that_ended_behind_ones_back(
    store: SqliteStore, connection: SqliteConnection
) -> None:
    """A commit of a transaction that the caller has rolled back is no success."""
    transaction = store.transaction()
    jobs = run_inside(store, transaction, store.enqueue(Order(spec_of(), ["1"])))
    assert isinstance(transaction.connection, sqlite3.Connection)
    transaction.connection.rollback()
    with pytest.raises(StoreError, match="ended before it was committed"):
        transaction.commit()
    assert connection.run(store.get(jobs)) == []
    store.close()


def test_the_levels_of_durability(store: SqliteStore, connection: SqliteConnection) -> None:
    """An enqueue is flushed to the disk, a claim need not be, and WAL is on for both."""

    def level() -> tuple[int, str]:
        database = connection.database()
        return (
            database.execute("PRAGMA synchronous").fetchone()[0],
            database.execute("PRAGMA journal_mode").fetchone()[0],
        )

    session = open_session(store, connection)
    enqueue(store, connection)
    assert level() == (2, "wal")
    claim(store, connection, session)
    assert level() == (1, "wal")
    enqueue(store, connection)
    assert level() == (2, "wal")
