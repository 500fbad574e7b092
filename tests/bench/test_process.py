"""The processes of a benchmark: what they tell, and that none is left."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from rota import Rota
from rota.measure.bench import tasks
from rota.measure.bench.crew import Crew, Plan, Told, _work
from rota.measure.bench.drain import run_dry
from rota.measure.bench.producer import Load, Producers, Sent
from rota.measure.processes import Child, Line, ProcessEnded, emptied
from rota.terminal.progress import Silent
from tests.fixtures.workers import until


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A SQLite database with Rota's tables."""
    url = f"sqlite:///{tmp_path}/rota.db"
    with Rota(url) as app:
        app.database.ready()
    return url


def children() -> set[int]:
    """The processes that this one has started and that live, but for multiprocessing's own."""
    mine = psutil.Process().children(recursive=True)
    return {one.pid for one in mine if "resource_tracker" not in " ".join(one.cmdline())}


def sent(url: str) -> int:
    """How many jobs there are."""
    with Rota(url) as app:
        return sum(
            sum(one.counts.values()) for one in app.database.run(app.database.store.queues())
        )


def test_told_once(url: str) -> None:
    """What a worker has told it does not tell again; together it is everything."""
    app = tasks.open_app(url)
    tasks.stamp.enqueue_many([(float(n),) for n in range(50)])
    before = children()
    with Crew(Plan(url), 2) as crew:
        crew.go()
        told: list[Told] = []
        deadline = time.monotonic() + 20
        while sum(one.settled for one in told) < 50:
            assert time.monotonic() < deadline
            told += crew.tell()
        told += crew.stop()
    app.close()
    assert sorted(key for one in told for key, _ in one.starts) == [float(n) for n in range(50)]
    assert sum(one.settled for one in told) == 50
    assert sum(count for one in told for _, count, _ in one.claims) == 50
    assert all(one.memory > 0 and one.cpu > 0 for one in told)
    assert children() <= before


@pytest.mark.parametrize("keep", [True, False])
def test_kept_or_not(url: str, *, keep: bool) -> None:
    """Completed jobs are there afterwards if they are to be kept, else they are gone."""
    app = tasks.open_app(url)
    tasks.noop.enqueue_many([(n,) for n in range(20)])
    app.close()
    with Crew(Plan(url, keep=keep)) as crew:
        assert sum(one.settled for one in run_dry(crew, 20, "drain", Silent())) == 20
        crew.stop()
    assert sent(url) == (20 if keep else 0)


def test_ctrl_c_is_the_parents(url: str) -> None:
    """A SIGINT, which a terminal sends to all of them, ends no worker of a benchmark."""
    before = children()
    with Crew(Plan(url)) as crew:
        crew.go()
        for pid in children() - before:
            os.kill(pid, signal.SIGINT)
        assert len(crew.tell()) == 1
        assert len(crew.stop()) == 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_deaf_from_the_first_moment(url: str) -> None:
    """A process that has only just been started does not hear a Ctrl-C either."""
    before = children()
    child: Child[Told] = Child(_work, Plan(url))
    try:
        [pid] = children() - before
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        blocked = int(next(line for line in status.splitlines() if "SigBlk" in line).split()[1], 16)
        assert blocked & (1 << (signal.SIGINT - 1))
    finally:
        child.kill()


def test_none_is_left_after_an_error(url: str) -> None:
    """Workers and producers end with the block, whatever ends the block."""
    before = children()

    def interrupted() -> None:
        with Crew(Plan(url), 2) as crew, Producers(Load(url, 100.0)) as producers:
            crew.go()
            producers.go()
            assert len(children() - before) == 3
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert children() <= before


def test_one_that_dies_is_noticed(url: str) -> None:
    """A worker that is killed ends the benchmark with an error, not with a wait for ever."""
    before = children()
    with Crew(Plan(url)) as crew:
        crew.go()
        [pid] = children() - before
        os.kill(pid, signal.SIGKILL)
        psutil.wait_procs([psutil.Process(pid)], timeout=20)
        with pytest.raises(ProcessEnded, match="ended by itself"):
            crew.tell()


def test_an_answer_that_nobody_waited_for(url: str) -> None:
    """What was asked before the stop is not lost: the answer comes with the last words."""
    with Producers(Load(url, None)) as producers:
        producers.go()
        until(lambda: sent(url), "the first job")
        [child] = producers._children
        child.ask()
        told = producers.stop()
    assert len(told) == 2
    assert told[0].jobs > 0
    assert sum(one.jobs for one in told) == sent(url)


def test_a_producer_ends_after_its_jobs(url: str) -> None:
    """Whole batches until the number is reached; then it says when that was."""
    with Producers(Load(url, None, batch=10, jobs=25)) as producers:
        producers.go()
        told: list[Sent] = []
        while not [one for one in told if one.ended]:
            told += producers.tell()
        told += producers.stop()
    assert sum(one.jobs for one in told) == 30
    assert sent(url) == 30


class Growing(list[int]):
    """A list to which somebody adds right after it was copied."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self.append(3)
        return found


def test_emptied_loses_nothing() -> None:
    """What others add meanwhile is in the next answer."""
    values = Growing([0, 1, 2])
    assert emptied(values) == [0, 1, 2]
    assert list(values) == [3]


def test_a_line_without_a_word_ends() -> None:
    """A child whose parent says anything but to begin does not begin."""

    class Pipe:
        def send(self, message: str) -> None:
            assert message == "ready"

        def recv(self) -> str:
            return "stop"

    line: Line[int] = Line(Pipe())  # type: ignore[arg-type]  # as much of one as it needs
    with pytest.raises(SystemExit):
        line.ready()
