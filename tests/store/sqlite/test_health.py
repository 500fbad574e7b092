"""The facts that `rota doctor` judges, from a real file."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rota.model.states import Move
from rota.store.health import SqliteFacts
from rota.store.migrate import migrate
from rota.store.sqlite import health
from rota.store.sqlite.store import SqliteStore
from tests.store.factories import claim, enqueue, open_session, settle, settlement

CAPABILITIES = "-dac_override,-dac_read_search"
UNPRIVILEGED = (
    ["setpriv", f"--bounding-set={CAPABILITIES}", f"--inh-caps={CAPABILITIES}"]
    if os.geteuid() == 0
    else []
)
"""Before a command that may not write what its user may not write; root may write everything."""

HOLD = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    database.execute(statement).fetchall()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    """A store of its own, up to date."""
    store = SqliteStore(tmp_path / "rota.db")
    with closing(store.connect()) as connection:
        migrate(store, connection)
    return store


@contextmanager
def holding(store: SqliteStore, *statements: str) -> Iterator[int]:
    """Another process that has run statements and stays; its id."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, store.path, *statements],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process.pid
        finally:
            process.stdin.close()


def look(store: SqliteStore) -> SqliteFacts:
    """All facts, by a connection of their own."""
    with closing(store.connect()) as connection:
        facts = connection.run(store.health())
    assert isinstance(facts, SqliteFacts)
    return facts


def faults(store: SqliteStore) -> tuple[str, ...] | None:
    """What the check of the whole file finds."""
    with closing(store.connect()) as connection:
        return connection.run(store.integrity())


def test_the_file(store: SqliteStore) -> None:
    """Version, mode, sizes and place of the file."""
    facts = look(store)
    assert facts.version == sqlite3.sqlite_version
    assert (facts.journal, facts.unseen, facts.damage) == ("wal", {}, None)
    assert facts.size == Path(store.path).stat().st_size
    assert facts.pages * facts.page_size == facts.size
    assert facts.disk_free > 0
    assert not facts.shared
    assert facts.writing is None


def test_a_shared_file(store: SqliteStore) -> None:
    """Tables of other applications are noticed."""
    with closing(sqlite3.connect(store.path)) as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    assert look(store).shared


def test_a_stuck_writer(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder of the write lock is found out, and the wait for it ends after a second."""
    monkeypatch.setattr(health, "TURN_PATIENCE", 0.05)
    with holding(store, "BEGIN IMMEDIATE") as pid:
        facts = look(store)
    assert facts.writing is not None
    assert facts.writing >= 0.05
    if health.LOCKS.exists():
        assert facts.writers == (pid,)
    after = look(store)
    assert (after.writing, after.writers) == (None, ())


READ_ONLY = """
import sys
from rota import Rota
with Rota(sys.argv[1]) as app:
    print(app.database.run(app.database.store.read_only()))
"""


@pytest.mark.skipif(
    bool(UNPRIVILEGED) and shutil.which("setpriv") is None, reason="root, no setpriv"
)
def test_what_may_only_be_read(store: SqliteStore) -> None:
    """A process that may not write the file knows that, so that its dashboard offers no actions."""
    file = Path(store.path)
    answers = []
    for folder, mode in ((0o777, 0o666), (0o777, 0o444), (0o555, 0o666)):
        file.parent.chmod(folder)
        file.chmod(mode)
        done = subprocess.run(
            [*UNPRIVILEGED, sys.executable, "-c", READ_ONLY, f"sqlite:///{file}"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        answers.append(done.stdout.strip())
    file.parent.chmod(0o755)
    assert answers == ["False", "True", "True"]


@pytest.mark.skipif(
    bool(UNPRIVILEGED) and shutil.which("setpriv") is None, reason="root, no setpriv"
)
def test_a_read_only_file(store: SqliteStore) -> None:
    """It is not said to be writable; a file that has no tables yet is no matter."""
    with holding(store, "SELECT 1"):  # so that this process need not write for the log
        Path(store.path).chmod(0o444)
        done = subprocess.run(
            [
                *UNPRIVILEGED,
                sys.executable,
                "-m",
                "rota",
                "doctor",
                f"--url=sqlite:///{store.path}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1, done.stderr
    assert "read-only" in done.stdout
    assert "The file can be written" not in done.stdout
    empty = SqliteStore(f"{store.path}.empty")
    assert look(empty).unseen == {}


def test_a_long_reader(store: SqliteStore) -> None:
    """A process with an open read transaction is named."""
    with holding(store, "BEGIN", "SELECT * FROM rota_job") as pid:
        facts = look(store)
    assert facts.writing is None
    if health.LOCKS.exists():
        assert facts.readers == (pid,)


def test_damage(store: SqliteStore) -> None:
    """The check is made only if asked for, and finds what is wrong."""
    assert faults(store) == ()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("DELETE FROM sqlite_master WHERE name = 'rota_job_kept'")
    assert faults(store)
    assert look(store).damage is None


def test_workers_and_jobs(store: SqliteStore) -> None:
    """A silent worker, the oldest job of each priority, a paused queue, an overdue timer."""
    with closing(store.connect()) as connection:
        session = open_session(store, connection, timeout=5.0)
        enqueue(store, connection, 2)
        claim(store, connection, session, 1)
        enqueue(store, connection, 2, queue="video")
        enqueue(store, connection, 1, queue="video", priority=7)
        connection.run(store.pause("video"))
        enqueue(store, connection, 1, delay=3600.0)
        database = connection.database()
        database.execute("UPDATE rota_job SET enqueued_at = enqueued_at - 3600 WHERE priority = 7")
        database.execute("UPDATE rota_job SET scheduled_at = scheduled_at - 3700 "
                         "WHERE scheduled_at IS NOT NULL")  # fmt: skip
        database.execute("UPDATE rota_session SET renewed_at = renewed_at - 60")
    work = look(store).work
    lanes = {(lane.queue, lane.priority): lane for lane in work.lanes}
    assert set(lanes) == {("default", 0), ("video", 0), ("video", 7)}
    assert lanes["video", 7].paused
    assert lanes["video", 7].oldest == pytest.approx(3600, abs=30)
    assert lanes["default", 0].oldest == pytest.approx(0, abs=30)
    assert work.overdue == pytest.approx(100, abs=30)
    [dead] = work.sessions
    assert (dead.worker, dead.leased, dead.queues) == ("alpha:4711", 1, ("default",))
    assert dead.silent == pytest.approx(60, abs=30)


def test_rescued_jobs(store: SqliteStore) -> None:
    """Jobs that were alone when their worker died within the hour are told by their task."""
    with closing(store.connect()) as connection:
        for queue, count in (("one", 1), ("two", 1), ("three", 3)):
            session = open_session(store, connection, timeout=0.0)
            enqueue(store, connection, count, task="shop.render", queue=queue)
            assert len(claim(store, connection, session, queues=(queue,))) == count
            connection.run(store.rescue())
            connection.run(store.rescue())
    [rescued] = look(store).work.rescued
    assert (rescued.task, rescued.jobs) == ("shop.render", 2)
    assert rescued.last == pytest.approx(0, abs=30)
    with closing(store.connect()) as connection:
        session = open_session(store, connection)
        done = claim(store, connection, session, queues=("one", "two"))
        settle(store, connection, session, *(settlement(job, Move.COMPLETE) for job in done))
    assert look(store).work.rescued == ()


def test_without_tables(tmp_path: Path) -> None:
    """A file without Rota's tables has a version of 0."""
    with closing(sqlite3.connect(tmp_path / "other.db")) as database:
        database.execute("CREATE TABLE orders (id)")
    facts = look(SqliteStore(tmp_path / "other.db"))
    assert facts.work.schema == 0
    assert facts.journal == "delete"


def test_tables_of_another_version(store: SqliteStore) -> None:
    """What cannot be read of them is unseen."""
    with closing(sqlite3.connect(store.path)) as database:
        database.execute("ALTER TABLE rota_session RENAME COLUMN renewed_at TO heard_at")
        database.execute("INSERT INTO rota_schema VALUES (99, 0)")
        database.commit()
    facts = look(store)
    assert facts.work.schema == 99
    assert facts.work.oldest_code <= facts.work.newest
    assert "renewed_at" in facts.unseen["work"]


def test_file_systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The mount that is nearest to the file counts, and a space in its name does not confuse."""
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "/dev/a / ext4 rw 0 0\n"
        "server:/x /srv/my\\040files nfs4 rw 0 0\n"
        "tmpfs /srv/my\\040files/fast tmpfs rw 0 0\n"
    )
    monkeypatch.setattr(health, "MOUNTS", mounts)
    assert health.file_system("/srv/my files/rota.db") == "nfs4"
    assert health.file_system("/srv/my files/fast/rota.db") == "tmpfs"
    assert health.file_system("/srv/other.db") == "ext4"
    monkeypatch.setattr(health, "MOUNTS", tmp_path / "none")
    assert health.file_system("/srv/other.db") is None
