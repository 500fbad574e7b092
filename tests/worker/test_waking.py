"""How soon a job starts, when nothing else is to do."""

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import Rota, Task
from rota.model.job import SessionInfo
from rota.worker import claim
from tests.fixtures.workers import LONG, ROOT, until, working

pytestmark = pytest.mark.both

START = Task[..., Any, Any]


@pytest.fixture
def begun() -> list[float]:
    """When each job began, by `time.time()`."""
    return []


@pytest.fixture
def start(app: Rota, begun: list[float]) -> START:
    """A task that notes when it begins."""

    @app.task(name="start")
    async def start() -> None:
        begun.append(time.time())

    return start


@contextmanager
def asleep(app: Rota, start: START, begun: list[float], **config: Any) -> Iterator[None]:
    """A worker that has run something and gone to sleep."""
    start.enqueue()
    with working(app, **config):
        until(lambda: begun)
        fall_asleep()
        begun.clear()
        yield


def fall_asleep() -> None:
    """Give an idle worker time to fall asleep; there is nothing to wait for."""
    threading.Event().wait(0.3)


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The config of a worker that looks for jobs only when something wakes it."""
    monkeypatch.setattr(claim, "SHORTEST_NAP", LONG)
    return {"poll": LONG}


@contextmanager
def stranger(app: Rota, delay: float) -> Iterator[Callable[[], float]]:
    """Another process, which enqueues when it is asked to, and says for when."""
    code = (
        "import sys, time; from rota import Rota; app = Rota(sys.argv[1]); "
        f"start = app.task(name='start')(lambda: None).using(delay={delay})\n"
        f"for line in sys.stdin: t = time.time() + {delay}; start.enqueue(); print(t, flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, app.url],
        cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def ask() -> float:
            stdin.write("\n")
            stdin.flush()
            return float(stdout.readline())

        yield ask
        stdin.close()


def delays(begun: list[float], times: int, ask: Callable[[], float]) -> list[float]:
    """Ask for jobs one by one; the seconds from the moment each was due to its start."""
    found = []
    for number in range(times):
        fall_asleep()
        due = ask()
        until(lambda number=number: len(begun) > number)  # type: ignore[misc]
        found.append(begun[number] - due)
    return found


def test_enqueue_wakes(app: Rota, start: START, begun: list[float], deaf: dict[str, float]) -> None:
    """A job that is enqueued in the same process starts at once, not with the next poll."""

    def ask() -> float:
        now = time.time()
        start.enqueue()
        return now

    with asleep(app, start, begun, **deaf):
        found = delays(begun, 4, ask)
    assert min(found) < 0.1
    assert max(found) < 0.5


def test_a_callers_commit_wakes(
    app: Rota, start: START, begun: list[float], deaf: dict[str, float]
) -> None:
    """A job in a transaction starts when that commits."""

    def ask() -> float:
        with app.transaction() as tx:
            start.enqueue(conn=tx)
        return time.time()

    with asleep(app, start, begun, **deaf):
        assert max(delays(begun, 3, ask)) < 0.5


def test_another_process_wakes(
    app: Rota, start: START, begun: list[float], deaf: dict[str, float]
) -> None:
    """A job that another process has enqueued starts at once as well."""
    with asleep(app, start, begun, **deaf), stranger(app, delay=0) as ask:
        found = delays(begun, 4, ask)
    assert min(found) < 0.2
    assert max(found) < 0.5


@pytest.mark.parametrize("delay", [0.15, 1.3])
def test_delayed(app: Rota, start: START, begun: list[float], delay: float) -> None:
    """A delayed job starts on an idle worker at its time: not before, and hardly later."""

    def ask() -> float:
        now = time.time()
        start.using(delay=delay).enqueue()
        return now + delay

    with asleep(app, start, begun):
        found = delays(begun, 2, ask)
    assert min(found) > -0.02
    assert max(found) < 0.3


def test_at(app: Rota, start: START, begun: list[float]) -> None:
    """A job with a moment starts at that moment, to which an earlier one was added later."""
    now = datetime.now(UTC)
    with asleep(app, start, begun):
        now = datetime.now(UTC)
        start.using(at=now + timedelta(seconds=1.2)).enqueue()
        start.using(at=now + timedelta(seconds=0.4)).enqueue()
        until(lambda: len(begun) >= 2)
    late = [begun[0] - now.timestamp() - 0.4, begun[1] - now.timestamp() - 1.2]
    assert min(late) > -0.02
    assert max(late) < 0.3


def test_delayed_by_another_process(app: Rota, start: START, begun: list[float]) -> None:
    """A delayed job of another process starts at its time too."""
    with asleep(app, start, begun), stranger(app, delay=0.25) as ask:
        found = delays(begun, 4, ask)
    assert min(found) > -0.02
    assert max(found) < 0.3


def test_a_retry_by_hand_wakes(app: Rota, deaf: dict[str, float]) -> None:
    """A job that a person retries starts at once."""
    runs: list[float] = []

    @app.task(name="job", max_attempts=1)
    async def job() -> None:
        runs.append(time.time())
        if len(runs) == 1:
            raise ValueError

    handle = job.enqueue()
    with working(app, **deaf):
        until(lambda: handle.status.finished)
        fall_asleep()
        now = time.time()
        app.database.run(app.database.store.retry([handle.id]))
        until(lambda: len(runs) == 2)
    assert runs[1] - now < 0.5


def test_resume_wakes(app: Rota, start: START, begun: list[float], deaf: dict[str, float]) -> None:
    """The jobs of a queue start at once when it is resumed."""
    with asleep(app, start, begun, **deaf):
        app.database.run(app.database.store.pause("default"))
        start.enqueue()
        fall_asleep()
        assert begun == []
        now = time.time()
        app.database.run(app.database.store.resume("default"))
        until(lambda: begun)
    assert begun[0] - now < 0.5


def test_an_idle_worker_is_idle(app: Rota, start: START, begun: list[float]) -> None:
    """A worker with nothing to do asks the database now and then, and not all the time."""
    asked: list[float] = []
    stage = app.database.store.stage

    def counted(limit: int) -> Any:
        asked.append(time.monotonic())
        return stage(limit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app.database.store, "stage", counted)
        with asleep(app, start, begun):
            asked.clear()
            threading.Event().wait(2)  # nothing to wait for: nothing shall happen
            assert len(asked) < 20


@pytest.mark.parametrize("delay", [None, 0.02])
def test_what_a_single_job_costs(
    app: Rota, start: START, begun: list[float], delay: float | None
) -> None:
    """A worker that is woken claims once, looks once more, and asks when the next job is due."""
    store = app.database.store
    asked: Counter[str] = Counter()

    def counted(name: str) -> Callable[..., Any]:
        method = getattr(store, name)

        def count(*args: Any, **options: Any) -> Any:
            asked[name] += 1
            return method(*args, **options)

        return count

    with pytest.MonkeyPatch.context() as patch:
        for name in ("claim", "look"):
            patch.setattr(store, name, counted(name))
        with asleep(app, start, begun):
            asked.clear()
            since = time.monotonic()
            for number in range(5):
                start.using(delay=delay).enqueue()
                until(lambda number=number: len(begun) > number)  # type: ignore[misc]
                fall_asleep()
            passed = time.monotonic() - since
    assert asked["look"] <= passed / 0.9 + 1
    if store.name == "postgres":  # SQLite has to look itself
        # A look that meets a job which has just become available claims, too.
        assert asked["claim"] <= 15 + asked["look"]


def test_those_that_would_go_first_but_do_not(app: Rota, start: START, begun: list[float]) -> None:
    """Where the woken workers do not come, because they have just died, another one finds the job."""
    others = [SessionInfo("beta", pid, ("default",), LONG, ("start",)) for pid in range(3)]
    for other in others:
        app.database.run(app.database.store.open_session(other))

    def ask() -> float:
        now = time.time()
        start.enqueue()
        return now

    with asleep(app, start, begun, poll=0.5):
        found = delays(begun, 8, ask)
    assert max(found) < 1.0
