"""Moving a key's jobs to another shard: what moves, what stays, and what a cut-off mover leaves."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from rota import ConfigError, JobNotFound, JobRecord, Rota, State, StoreUnavailable, Unique
from rota.app import mover
from rota.app.mover import Moved, Mover
from rota.app.shard import Shard
from rota.app.shards import Shards
from rota.model.job import JobSpec, Order, SessionInfo
from rota.model.transfer import MOVED, NEVER, QUEUE, TASK
from rota.store.sqlite.connection import SqliteConnection

AWAY = "postgresql://nobody@127.0.0.1:1/nothing"


class CutOffError(BaseException):
    """Stands for the end of a process."""


@contextmanager
def app(folder: Path, *, acme: str, **more: str) -> Iterator[Shards]:
    """The shop with shards `eu` and `us`, and `acme` pinned to one, as a deploy would have it."""
    urls = {name: f"sqlite:///{folder}/{name}.db" for name in ("eu", "us")} | more
    with Rota.shards(urls, key="{tenant}", pinned={"acme": acme, "globex": "eu"}) as rota:

        @rota.task(name="invoice")
        def invoice(tenant: str, number: int = 0) -> None:
            del tenant, number

        @rota.task(name="order", unique=Unique(by=("tenant", "number")))
        def order(tenant: str, number: int = 0) -> None:
            del tenant, number

        @rota.task(name="note", unique=Unique(by=("number",), on_conflict="replace"))
        def note(tenant: str, number: int = 0) -> None:
            del tenant, number

        @rota.task(name="ping")
        def ping(number: int = 0) -> None:
            del number

        yield rota


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Shards]:
    """The shop while `acme` belongs to `eu`."""
    with app(tmp_path, acme="eu") as rota:
        yield rota


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Shards]:
    """The shop since `acme` belongs to `us`."""
    with app(tmp_path, acme="us") as rota:
        yield rota


def enqueue(rota: Shards, task: str, *args: object, **options: Any) -> Any:
    """A job of one of the tasks."""
    return rota.find_task(task).using(**options).enqueue(*args)


def numbers(rota: Shards, shard: str) -> list[int]:
    """The numbers of the invoices that wait on a shard, in the order in which they would start."""
    found = [
        record
        for state in (State.AVAILABLE, State.SCHEDULED, State.RETRYABLE)
        for record in rota[shard].jobs.iterate(state=state, task="invoice")
    ]
    return [json.loads(job.args)["number"] for job in sorted(found, key=lambda job: job.id)]


def transfers(rota: Shards, shard: str) -> list[JobRecord]:
    """The transfers that a shard has."""
    return rota[shard].jobs.list(task=TASK)


def test_the_jobs_of_a_key_move(old: Shards, new: Shards) -> None:
    """They move in order; jobs of other keys and of none stay; nothing is left of the transfer."""
    for number in range(5):
        enqueue(old, "invoice", "acme", number)
        enqueue(old, "invoice", "globex", number)
    with old.on("eu"):
        enqueue(old, "ping", 1)
    assert new.move("acme", to="us") == Moved(jobs=5)
    assert numbers(new, "us") == [0, 1, 2, 3, 4]
    assert numbers(new, "eu") == [0, 1, 2, 3, 4]
    assert new["eu"].jobs.count(state="available") == 6
    assert transfers(new, "eu") == transfers(new, "us") == []
    assert new.move("acme", to="us") == Moved()


def test_many_transfers(old: Shards, new: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many jobs move in several transfers, by number and by size, and keep their order."""
    monkeypatch.setattr(mover, "BATCH", 3)
    old.find_task("invoice").enqueue_many([("acme", number) for number in range(10)])
    assert new.move("acme", to="us") == Moved(jobs=10)
    monkeypatch.setattr(mover, "BATCH_CHARACTERS", 1)
    old.find_task("invoice").enqueue_many([("acme", number) for number in range(10, 14)])
    assert new.move("acme", to="us") == Moved(jobs=4)
    assert numbers(new, "us") == [*range(14)]


def test_the_old_id(old: Shards, new: Shards) -> None:
    """There is no job of the old id any more, and the new one says in a header where it was."""
    handle = enqueue(old, "invoice", "acme", 1)
    new.move("acme", to="us")
    with pytest.raises(JobNotFound):
        _ = new.job(handle.reference).status
    [record] = new["us"].jobs.list()
    assert record.headers[MOVED] == handle.reference == f"eu:{handle.id}"


def test_what_runs_stays(old: Shards, new: Shards) -> None:
    """A running job is counted and ends where it is.

    If it comes back, the next call moves it, attempts and all.
    """
    shard = old["eu"]
    handle = enqueue(old, "invoice", "acme", 1)
    enqueue(old, "invoice", "globex", 2)
    with claimed(shard) as release:
        assert new.move("acme", to="us") == Moved(running=1)
        assert str(handle.status) == "running"
        release()
    assert new.move("acme", to="us") == Moved(jobs=1)
    assert numbers(new, "us") == [1]


def test_a_unique_key_that_is_taken(old: Shards, new: Shards) -> None:
    """A job whose unique key another one has in the new shard joins it."""
    enqueue(old, "order", "acme", 1)
    enqueue(old, "order", "acme", 2)
    there = enqueue(new, "order", "acme", 1)
    assert new.move("acme", to="us") == Moved(jobs=1, joined=1)
    assert [job.id for job in new["us"].jobs.list()][-1] == there.id
    assert new["us"].jobs.count() == 2
    assert new["eu"].jobs.count() == 0


def test_jobs_that_make_no_key(old: Shards, new: Shards) -> None:
    """Jobs of unknown tasks, and args stored by SQL that give no key, stay where they are."""
    shard = old["eu"]
    for task, args in [
        ("gone", '{"tenant":"acme"}'),
        ("invoice", "[7]"),
        ("invoice", '{"tenant":[1]}'),
    ]:
        shard.database.run(shard.database.store.enqueue(Order(JobSpec(task), [args])))
    assert new.move("acme", to="us") == Moved()
    assert new["eu"].jobs.count() == 3


def test_a_job_that_changes_its_key(
    old: Shards, new: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was replaced by one of another key, after the mover has found it, stays."""
    enqueue(old, "note", "acme", 1)
    find = Mover._found

    def replaced(self: Mover, *wanted: Any) -> Any:
        found = find(self, *wanted)
        monkeypatch.undo()
        enqueue(old, "note", "globex", 1)
        return found

    monkeypatch.setattr(Mover, "_found", replaced)
    assert new.move("acme", to="us") == Moved()
    assert [job.args for job in new["eu"].jobs.list()] == ['{"tenant":"globex","number":1}']


@contextmanager
def claimed(shard: Shard) -> Iterator[Callable[[], None]]:
    """The first job of a shard in the hands of a worker, which gives it back when it is told to."""
    database = shard.database
    store = database.store
    session = database.run(store.open_session(SessionInfo("host", 1, ("default",), 600.0)))
    assert len(database.run(store.claim(session, ["default"], 1))) == 1
    yield lambda: database.run(store.close_session(session))


# What is wrong ------------------------------------------------------------------------------------


def test_the_key_is_pinned_first(old: Shards) -> None:
    """As long as new jobs of the key lie elsewhere, none is moved, and one is told what to do."""
    enqueue(old, "invoice", "acme", 1)
    with pytest.raises(
        ConfigError, match=r"new jobs of 'acme' belong to eu: pin .*pinned=\{'acme': 'us'\}"
    ):
        old.move("acme", to="us")
    assert old.move("acme", to="eu") == Moved()
    assert numbers(old, "eu") == [1]


def test_wrong_input(new: Shards, tmp_path: Path) -> None:
    """An unknown shard, an app without keys; a key without jobs is nothing to complain of."""
    with pytest.raises(ConfigError, match="there is no shard 'mars'; the shards are eu, us"):
        new.move("acme", to="mars")
    assert new.move("acme", to="us") == Moved()
    with (
        Rota.shards({"eu": f"sqlite:///{tmp_path}/eu.db"}) as without,
        pytest.raises(ConfigError, match="these shards have no key"),
    ):
        without.move("acme", to="eu")


def test_the_target_is_away(old: Shards, tmp_path: Path) -> None:
    """Then nothing leaves its shard."""
    enqueue(old, "invoice", "acme", 1)
    with (
        app(tmp_path, acme="us", us=AWAY) as new,
        pytest.raises(StoreUnavailable, match=r"shard us: .*nothing was moved"),
    ):
        new.move("acme", to="us")
    assert numbers(old, "eu") == [1]
    assert transfers(old, "eu") == []


def test_a_source_is_away(old: Shards, tmp_path: Path) -> None:
    """What waits on the other shards is moved, and one is told of the one that is away."""
    enqueue(old, "invoice", "acme", 1)
    with app(tmp_path, acme="us", asia=AWAY) as new:
        with pytest.raises(StoreUnavailable, match=r"shard asia: .* run it again"):
            new.move("acme", to="us")
        assert numbers(new, "us") == [1]


def test_a_transfer_to_a_shard_that_is_gone(old: Shards, new: Shards, tmp_path: Path) -> None:
    """One is told where it is, and it stays."""
    enqueue(old, "invoice", "acme", 1)
    with cutting(at_put), pytest.raises(CutOffError):
        new.move("acme", to="us")
    urls = {"eu": f"sqlite:///{tmp_path}/eu.db"}
    with (
        Rota.shards(urls, key="{tenant}") as one,
        pytest.raises(ConfigError, match="transfer to shard 'us'"),
    ):
        one.move("acme", to="eu")
    assert len(transfers(old, "eu")) == 1


def test_a_transfer_that_cannot_be_read(old: Shards, new: Shards) -> None:
    """One is told which job it is, and it stays."""
    shard = old["eu"]
    spec = JobSpec(TASK, QUEUE, at=NEVER)
    [job] = shard.database.run(shard.database.store.enqueue(Order(spec, ['{"token":1}'])))
    with pytest.raises(
        ConfigError, match=f"job eu:{job}: this version of Rota cannot read it as a transfer"
    ):
        new.move("acme", to="us")
    assert len(transfers(old, "eu")) == 1


# Cut off ------------------------------------------------------------------------------------------


@contextmanager
def cutting(ends: Callable[[str], bool]) -> Iterator[None]:
    """Let the process end, as it were, before the first statement of which this is true."""
    run = SqliteConnection._statement

    def statement(self: SqliteConnection, database: Any, text: str, *params: Any) -> Any:
        if ends(text):
            raise CutOffError
        return run(self, database, text, *params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteConnection, "_statement", statement)
        yield


def at_put(text: str) -> bool:
    """Whether this is the statement that begins to store a transfer's jobs."""
    return "INSERT INTO rota_unique" in text and ":token" in text


def counting_to(last: int) -> Callable[[str], bool]:
    """Says no so many times."""
    left = iter(range(last))
    return lambda _: next(left, None) is None


def test_cut_off_before_any_statement(
    old: Shards, new: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a mover is cut off, the next moves each job once; nothing is left of the first."""
    monkeypatch.setattr(mover, "BATCH", 2)
    enqueue(old, "invoice", "globex", 9)
    new["us"].jobs.count()
    begun = 0
    for last in count():
        old.find_task("invoice").enqueue_many([("acme", number) for number in range(3)])
        enqueue(old, "order", "acme", 7)
        whole = True
        with cutting(counting_to(last)):
            try:
                new.move("acme", to="us")
            except CutOffError:
                whole = False
        begun += len(transfers(new, "eu"))
        new.move("acme", to="us")
        assert numbers(new, "us") == [0, 1, 2], last
        assert (new["us"].jobs.count(), numbers(new, "eu"), new["eu"].jobs.count()) == (4, [9], 1)
        if whole:
            break
        new["us"].jobs.delete(queue="default")
    assert last > 20
    assert begun > 5


def test_two_movers(old: Shards, new: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mover that stalls before storing its transfer, until another did it all, stores nothing."""
    enqueue(old, "invoice", "acme", 1)
    put = Mover._put

    def stand_still(self: Mover, *transfer: Any) -> Moved:
        monkeypatch.undo()
        assert new.move("acme", to="us") == Moved(jobs=1)
        return put(self, *transfer)

    monkeypatch.setattr(Mover, "_put", stand_still)
    assert new.move("acme", to="us") == Moved()
    assert numbers(new, "us") == [1]
    assert transfers(new, "eu") == []


def test_a_key_that_moves_on(old: Shards, new: Shards, tmp_path: Path) -> None:
    """What a killed mover had on its way to one shard comes to the shard that has the key by now."""
    enqueue(old, "invoice", "acme", 1)
    with cutting(at_put), pytest.raises(CutOffError):
        new.move("acme", to="us")
    with app(tmp_path, acme="asia", asia=f"sqlite:///{tmp_path}/asia.db") as newest:
        assert newest.move("acme", to="asia").jobs == 2
        assert numbers(newest, "asia") == [1]
        assert newest["us"].jobs.count() == newest["eu"].jobs.count() == 0


SHOP = """
import os, signal
from rota import Rota
from rota.store.sqlite.connection import SqliteConnection

rota = Rota.shards({"eu": "sqlite:///eu.db", "us": "sqlite:///us.db"}, key="{tenant}", pinned={"acme": "us"})

@rota.task(name="invoice")
def invoice(tenant: str, number: int = 0) -> None: ...

run = SqliteConnection._statement

def statement(self, database, text, *params):
    if "INSERT INTO rota_unique" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    return run(self, database, text, *params)

if "KILLED" in os.environ:
    SqliteConnection._statement = statement
"""


def test_a_process_that_is_killed(old: Shards, new: Shards, tmp_path: Path) -> None:
    """The command is killed between the two databases; said again, it finishes what it began."""
    old.find_task("invoice").enqueue_many([("acme", number) for number in range(3)])
    (tmp_path / "killed_shop.py").write_text(SHOP)
    command = [
        sys.executable,
        "-m",
        "rota",
        "shards",
        "move",
        "killed_shop:rota",
        "acme",
        "--to",
        "us",
    ]
    environment = {**os.environ, "KILLED": "yes"}
    killed = subprocess.run(
        command, cwd=tmp_path, env=environment, check=False, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert numbers(new, "eu") == numbers(new, "us") == []
    assert len(transfers(new, "eu")) == 1
    assert new.move("acme", to="us") == Moved(jobs=3)
    assert numbers(new, "us") == [0, 1, 2]
