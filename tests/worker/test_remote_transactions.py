"""Transactions of handlers in another process than their worker, and their fate when it is lost."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from rota import Backoff, JobFailed, Rota, State
from rota.worker import calls
from tests.fixtures.workers import LONG, records, until, working
from tests.worker import chores, clustered
from tests.worker.engines import Here, adopt

pytestmark = pytest.mark.both

AT_ONCE = Backoff(first=0, factor=1, jitter=0)


def effects(app: Rota) -> list[int]:
    """What handlers have written."""
    with app.transaction() as tx:
        return sorted(row[0] for row in tx.execute("SELECT number FROM effect").fetchall())


@pytest.fixture(autouse=True)
def table(app: Rota) -> None:
    """A table of the handlers'."""
    with app.transaction() as tx:
        tx.execute("CREATE TABLE effect (number integer)")


@pytest.fixture
def nodes(app: Rota, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Here]]:
    """The engines that workers have made; their nodes know the test's database."""
    made: list[Here] = []

    def make(address: str) -> Here:
        made.append(Here(address))
        return made[-1]

    monkeypatch.setattr(calls, "Dask", make)
    clustered.use(app.url)
    yield made
    clustered.use("sqlite:///nobody-opens-this.db")


def only_postgres(app: Rota, *, inside: bool) -> None:
    """Leave out what SQLite cannot have: a transaction that is open while others write."""
    if inside and app.database.store.name == "sqlite":
        pytest.skip("SQLite has one writer at a time")


def test_with_the_job(app: Rota, nodes: list[Here], tmp_path: Path) -> None:
    """What is written and the completion of the job commit together, for jobs that share a claim."""
    write = adopt(app, clustered.write)
    clustered.note(str(tmp_path), "go")
    clustered.note(str(tmp_path), "end")
    write.enqueue_many([(str(tmp_path), number) for number in range(20)])
    first = write.enqueue(str(tmp_path), 20)
    with working(app, dask="here"):
        assert first.result(timeout=LONG) == "attempt 1"
        until(lambda: len(effects(app)) == 21)
    assert effects(app) == list(range(21))
    assert len(nodes) == 1


@pytest.mark.parametrize("inside", [False, True])
def test_a_node_that_was_cut_off(
    app: Rota, nodes: list[Here], tmp_path: Path, *, inside: bool
) -> None:
    """It cannot commit what its worker has given up; the next attempt does."""
    only_postgres(app, inside=inside)
    write = adopt(app, clustered.write, retry=AT_ONCE)
    handle = write.enqueue(str(tmp_path), 1, inside=inside)
    with working(app, dask="here"):
        until((tmp_path / "began-1").exists)
        nodes[0].freeze()
        until(lambda: handle.record().errors)
        clustered.note(str(tmp_path), "go")
        until((tmp_path / "committed-2").exists)
        clustered.note(str(tmp_path), "end")
        assert handle.result(timeout=LONG) == "attempt 2"
        until(lambda: nodes[0].busy == 0)
    assert effects(app) == [1]
    assert not (tmp_path / "committed-1").exists()
    [error] = handle.record().errors
    assert error.exception == "rota.NodeLost"


def test_a_node_that_was_cut_off_among_others(app: Rota, nodes: list[Here], tmp_path: Path) -> None:
    """So it is where the transaction has given the job another lease than that of its claim."""
    only_postgres(app, inside=True)
    write = adopt(app, clustered.write, retry=AT_ONCE)
    for number in (1, 2):
        write.enqueue(str(tmp_path), number, inside=True)
    with working(app, dask="here"):
        until(lambda: nodes[0].busy == 2 and (tmp_path / "began-1").exists())
        until(lambda: len(singled_out(app)) == 2)
        nodes[0].freeze()
        until(lambda: all(record.errors for record in records(app)))
        for name in ("go", "end"):
            clustered.note(str(tmp_path), name)
        until(lambda: len(records(app, State.COMPLETED)) == 2)
        until(lambda: nodes[0].busy == 0)
    assert effects(app) == [1, 2]


def singled_out(app: Rota) -> list[int]:
    """The jobs that have a lease of their own."""
    with app.transaction() as tx:
        found = tx.execute("SELECT jobs[1] FROM rota.lease WHERE cardinality(jobs) = 1").fetchall()
    return [job for (job,) in found]


def test_a_node_that_was_lost_after_its_commit(
    app: Rota, nodes: list[Here], tmp_path: Path
) -> None:
    """The job is completed, and does not run again."""
    handle = adopt(app, clustered.write, retry=AT_ONCE).enqueue(str(tmp_path), 1)
    clustered.note(str(tmp_path), "go")
    with working(app, dask="here"):
        until((tmp_path / "committed-1").exists)
        nodes[0].freeze()
        assert handle.result(timeout=LONG) == "attempt 1"
        clustered.note(str(tmp_path), "end")
    assert effects(app) == [1]
    assert handle.record().errors == ()


@pytest.mark.parametrize("inside", [False, True])
def test_a_worker_that_stops(app: Rota, nodes: list[Here], tmp_path: Path, *, inside: bool) -> None:
    """A job that was given back is not completed by its old run."""
    only_postgres(app, inside=inside)
    handle = adopt(app, clustered.write).enqueue(str(tmp_path), 1, inside=inside)
    with working(app, dask="here", grace=0.1):
        until((tmp_path / "began-1").exists)
    assert handle.record().state is State.AVAILABLE
    clustered.note(str(tmp_path), "go")
    clustered.note(str(tmp_path), "end")
    until(lambda: nodes[0].busy == 0)
    assert (effects(app), handle.record().state) == ([], State.AVAILABLE)
    assert len(nodes) == 1


@pytest.mark.usefixtures("nodes")
def test_another_database(
    app: Rota, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A node whose app has another database than the worker is told so, before it writes anything."""
    with Rota(f"sqlite:///{tmp_path_factory.mktemp('other') / 'rota.db'}") as other:
        other.database.ready()
        clustered.use(other.url)
        clustered.note(str(tmp_path), "go")
        handle = adopt(app, clustered.write, max_attempts=1).enqueue(str(tmp_path), 1)
        with working(app, dask="here"), pytest.raises(JobFailed, match="another database here"):
            handle.result(timeout=LONG)


@pytest.mark.parametrize("committed", [False, True])
def test_in_a_child_process(app: Rota, tmp_path: Path, *, committed: bool) -> None:
    """It has its transaction by the same means; where it dies, what it has committed counts."""
    handle = chores.adopt(app, chores.transact, max_attempts=1).enqueue(str(tmp_path), 1)
    begin_child = partial(chores.use, app.url)
    if committed:
        clustered.note(str(tmp_path), "go")
    with working(app, begin_child=begin_child, processes=1):
        until((tmp_path / ("committed-1" if committed else "began-1")).exists)
        os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)
        ended = handle.wait(timeout=LONG).state
    expected = (State.COMPLETED, [1]) if committed else (State.DISCARDED, [])
    assert (ended, effects(app)) == expected


def test_the_end_of_a_child(app: Rota, tmp_path: Path) -> None:
    """The result is that of the transaction, and what comes later is not heeded."""
    handle = chores.adopt(app, chores.transact).enqueue(str(tmp_path), 1)
    for name in ("go", "end"):
        clustered.note(str(tmp_path), name)
    with working(app, begin_child=partial(chores.use, app.url), processes=1):
        assert handle.result(timeout=LONG) == "attempt 1"
    assert effects(app) == [1]
