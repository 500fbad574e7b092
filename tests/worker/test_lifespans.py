"""A worker's lifespans: when they are entered and left, and what happens when one goes wrong."""

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

import rota as public
from rota import ConfigError, LifespanFailed, Rota, State, WorkerConfig
from rota.events import JobSettled, LifespanOverdue, LifespanRaised, WorkerStarted
from rota.worker import Worker
from tests.fixtures.workers import ROOT, drained, until, working

KINDS = pytest.mark.parametrize("kind", ["async", "sync"])


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """Set when the test is over, so that no thread waits for ever."""
    event = threading.Event()
    yield event
    event.set()


def lifespan(
    app: Rota,
    kind: str,
    name: str,
    enter: Callable[[], object] = lambda: None,
    leave: Callable[[], object] = lambda: None,
    **options: Any,
) -> None:
    """Register one that is `async` or `sync`."""

    async def on_loop() -> AsyncIterator[object]:
        value = enter()
        yield value
        leave()

    def in_thread() -> Iterator[object]:
        value = enter()
        yield value
        leave()

    function: Any = on_loop if kind == "async" else in_thread
    app.lifespan(name=name, **options)(function)


def noting(said: list[str], what: str) -> Callable[[], None]:
    """A function that says something."""
    return lambda: said.append(what)


@KINDS
def test_around_the_run(app: Rota, kind: str) -> None:
    """All are entered in order before the worker claims, and left in reverse after all handlers."""
    said: list[str] = []
    for name in ("one", "two"):
        lifespan(app, kind, name, noting(said, f"enter {name}"), noting(said, f"leave {name}"))
    app.on(WorkerStarted)(lambda _: said.append("claims"))
    app.on(JobSettled)(lambda _: said.append("settled"))

    @app.task(name="job")
    def job() -> None:
        said.append("runs")

    job.enqueue()
    drained(app)
    assert said == [
        "enter one", "enter two", "claims", "runs", "settled", "leave two", "leave one",
    ]  # fmt: skip


def test_where_they_live(app: Rota) -> None:
    """An async one lives in one asyncio task of the loop's thread, a sync one in a thread of its own."""
    where: dict[str, list[object]] = {"async": [], "sync": []}

    @app.lifespan
    async def on_loop() -> AsyncIterator[None]:
        where["async"] += [threading.current_thread(), asyncio.current_task()]
        yield
        where["async"] += [threading.current_thread(), asyncio.current_task()]

    @app.lifespan
    def in_thread() -> Iterator[None]:
        where["sync"].append(threading.current_thread())
        yield
        where["sync"].append(threading.current_thread())

    app.task(name="job")(lambda: None)
    drained(app)
    thread, task, *later = where["async"]
    assert later == [thread, task]
    assert thread is threading.current_thread()
    entered, left = where["sync"]
    assert entered is left
    assert isinstance(entered, threading.Thread)
    assert entered.daemon
    assert entered is not thread


def test_what_is_a_context_manager_already(app: Rota) -> None:
    """Functions that give context managers, and classes of them, are lifespans, too."""
    said: list[str] = []

    class Open:
        def __enter__(self) -> None:
            said.append("class")

        def __exit__(self, *_: object) -> None:
            said.append("class left")

    @app.lifespan
    @contextmanager
    def sync() -> Iterator[None]:
        said.append("sync")
        yield
        said.append("sync left")

    @app.lifespan
    @asynccontextmanager
    async def on_loop() -> AsyncIterator[None]:
        said.append("async")
        yield
        said.append("async left")

    app.lifespan(Open)
    app.task(name="job")(lambda: None)
    drained(app)
    assert said == ["sync", "async", "class", "class left", "async left", "sync left"]


def test_each_run_has_its_own(app: Rota) -> None:
    """A worker that runs again enters its lifespans again."""
    said: list[str] = []
    lifespan(app, "sync", "one", noting(said, "enter"), noting(said, "leave"))
    app.task(name="job")(lambda: None)
    drained(app)
    drained(app)
    assert said == ["enter", "leave"] * 2


# Entering ----------------------------------------------------------------------------------------


@KINDS
def test_an_error_at_entry(app: Rota, kind: str) -> None:
    """It ends the worker with an error that names it; nothing is claimed, earlier ones are left."""
    said: list[str] = []

    def refuse() -> None:
        raise OSError("no route to the server")

    lifespan(app, "sync", "first", noting(said, "enter"), noting(said, "leave"))
    lifespan(app, kind, "second", refuse)
    lifespan(app, "sync", "third", noting(said, "never"))
    job = app.task(name="job")(lambda: None).enqueue()
    why = "'second' failed: OSError: no route"
    with (
        app.events.collect(WorkerStarted) as started,
        pytest.raises(LifespanFailed, match=why) as caught,
    ):
        drained(app)
    assert isinstance(caught.value.__cause__, OSError)
    assert said == ["enter", "leave"]
    assert (job.status, started) == (State.AVAILABLE, [])


@KINDS
def test_one_that_never_yields(app: Rota, kind: str) -> None:
    """A generator that ends without a yield ends the worker, as an error at entry does."""

    async def on_loop() -> AsyncIterator[None]:
        if app is None:
            yield

    def in_thread() -> Iterator[None]:
        yield from ()

    function: Any = on_loop if kind == "async" else in_thread
    app.lifespan(function)
    app.task(name="job")(lambda: None)
    with pytest.raises(LifespanFailed, match="yield"):
        drained(app)


def test_a_stop_during_an_entry(app: Rota, never: threading.Event) -> None:
    """A worker that is told to stop gives up an entry that takes long, and leaves the earlier ones."""
    said: list[str] = []
    entering = threading.Event()

    def take_long() -> None:
        entering.set()
        never.wait(20)

    lifespan(app, "async", "first", noting(said, "enter"), noting(said, "leave"))
    lifespan(app, "sync", "slow", take_long)
    app.task(name="job")(lambda: None)
    worker = Worker(app, WorkerConfig())
    running = threading.Thread(target=worker.run)
    with app.events.collect(WorkerStarted) as started:
        running.start()
        assert entering.wait(20)
        worker.stop()
        running.join(10)
        assert not running.is_alive()
    assert (said, started) == (["enter", "leave"], [])


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda app: app.lifespan(contextlib.nullcontext()), "a function that yields once"),
        (lambda app: app.lifespan(_never_yields), "never yields"),
        (lambda app: app.lifespan(_wants_more), "`url` of lifespan '_wants_more' gets no value"),
        (lambda app: app.lifespan(executor="thread")(_fine), "leave it out"),
        (lambda app: app.lifespan(executor="process")(_async), "has no event loop"),
        (lambda app: app.lifespan(executor="process")(_nested()), "top level of a module"),
        (lambda app: app.lifespan(app.lifespan(_fine)), "already a lifespan named '_fine'"),
        (lambda app: app.lifespan(timeout=-1)(_fine), "timeout: must be between 0"),
    ],
)  # fmt: skip
def test_what_is_refused(app: Rota, make: Callable[[Any], object], why: str) -> None:
    """What could not be a lifespan is refused where it is registered, with what to do."""
    with pytest.raises(ConfigError, match=why):
        make(app)


def test_no_context_manager(app: Rota) -> None:
    """A function that gives no context manager is a clear error at the start."""
    plain: Any = _fine_but_plain
    app.lifespan(plain)
    app.task(name="job")(lambda: None)
    with pytest.raises(ConfigError, match="gave int, which is not a context manager"):
        drained(app)


async def _never_yields() -> None: ...


def _fine_but_plain() -> int:
    return 1


def _wants_more(url: str) -> Iterator[str]:
    yield url


def _fine() -> Iterator[None]:
    yield


async def _async() -> AsyncIterator[None]:
    yield


def _nested() -> Any:
    def inner() -> Iterator[None]:
        yield

    return inner


# Leaving -----------------------------------------------------------------------------------------


@KINDS
def test_one_that_raises_as_it_is_left(
    app: Rota, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The error is an event and logged; the others are left, and the worker ends as it should."""
    said: list[str] = []

    def refuse() -> None:
        raise OSError("closed already")

    lifespan(app, "sync", "first", leave=noting(said, "left"))
    lifespan(app, kind, "second", leave=refuse)
    job = app.task(name="job")(lambda: None).enqueue()
    with app.events.collect(LifespanRaised) as raised:
        drained(app)
    assert [(event.lifespan, str(event.error)) for event in raised] == [
        ("second", "closed already")
    ]
    assert "lifespan second raised an exception as it ended" in caplog.text
    assert (said, job.status) == (["left"], State.COMPLETED)


@KINDS
def test_one_that_takes_too_long(app: Rota, kind: str, never: threading.Event) -> None:
    """It is left behind after its timeout, when the worker's session has long ended."""
    said: list[str] = []
    sessions: list[int] = []
    cancelled: list[str] = []

    def how_many() -> int:
        return len(app.database.run(app.database.store.workers()))

    lifespan(app, "sync", "first", leave=noting(said, "left"))

    async def on_loop() -> AsyncIterator[None]:
        yield
        sessions.append(await asyncio.to_thread(how_many))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("cancelled")
            raise

    def in_thread() -> Iterator[None]:
        yield
        sessions.append(how_many())
        never.wait(20)

    function: Any = on_loop if kind == "async" else in_thread
    app.lifespan(name="slow", timeout=0.5)(function)
    job = app.task(name="job")(lambda: None).enqueue()
    with app.events.collect(LifespanOverdue) as overdue:
        drained(app)
    assert overdue == [LifespanOverdue("slow", 0.5)]
    assert (said, sessions, job.status) == (["left"], [0], State.COMPLETED)
    assert cancelled == (["cancelled"] if kind == "async" else [])


SCRIPT = """
import asyncio, threading
from rota import Rota, WorkerConfig
from rota.worker import Worker

rota = Rota("sqlite:///rota.db")

@rota.task(name="job")
def job(): ...

@rota.lifespan(timeout=0.2)
def in_thread():
    yield
    threading.Event().wait()

@rota.lifespan(timeout=0.2)
async def on_loop():
    yield
    await asyncio.Event().wait()

job.enqueue()
Worker(rota, WorkerConfig(drain=True)).run()
print("ended")
"""


def test_the_process_ends(tmp_path: Path) -> None:
    """Neither a thread nor a task that is left behind keeps the process."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True,
        timeout=30, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
    assert "lifespan in_thread did not end within 0.2 seconds" in done.stderr
    assert "lifespan on_loop did not end within 0.2 seconds" in done.stderr


def test_after_a_handler_that_hangs(app: Rota, never: threading.Event) -> None:
    """Where a handler outlasts the grace period, they are left once its job is given back."""
    began = threading.Event()
    states: list[State] = []

    @app.task(name="deaf")
    def deaf() -> None:
        began.set()
        never.wait(20)

    job = deaf.enqueue()
    lifespan(app, "sync", "engine", leave=lambda: states.append(job.status))
    with working(app, grace=0.2):
        assert began.wait(20)
    assert states == [State.AVAILABLE]


def test_a_second_request_to_stop(app: Rota, never: threading.Event) -> None:
    """`abort` leaves a lifespan behind after a second, whatever its timeout."""
    leaving = threading.Event()

    def take_long() -> None:
        leaving.set()
        never.wait(20)

    lifespan(app, "sync", "slow", leave=take_long, timeout=3600)
    app.task(name="job")(lambda: None)
    with app.events.collect(LifespanOverdue) as overdue, working(app) as worker:
        worker.stop()
        assert leaving.wait(20)
        worker.abort()
    assert overdue == [LifespanOverdue("slow", 1.0)]


def test_one_that_ends_by_itself(app: Rota) -> None:
    """A lifespan that fails while the worker runs stops it in order; the error says which one."""
    fail = threading.Event()

    async def listen() -> None:
        while not fail.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.01)
        raise OSError("the connection is gone")

    @app.lifespan
    async def listener() -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            group.create_task(listen())
            yield

    @app.task(name="job")
    async def job() -> None:
        fail.set()
        await asyncio.sleep(0.2)

    handle = job.enqueue()
    with pytest.raises(LifespanFailed, match="lifespan 'listener' failed"), working(app):
        until(lambda: handle.status.finished)
    assert handle.status is State.COMPLETED


def test_in_a_web_process(app: Rota) -> None:
    """`Worker.arun` on a loop of somebody else enters and leaves them on that loop."""
    loops: list[object] = []

    @app.lifespan
    async def client() -> AsyncIterator[object]:
        loops.append(asyncio.get_running_loop())
        yield object()
        loops.append(asyncio.get_running_loop())

    @app.task(name="job")
    async def job(client: object = public.PROVIDED) -> None:
        assert client is not public.PROVIDED
        loops.append(asyncio.get_running_loop())

    job.enqueue()

    async def serve() -> None:
        await Worker(app, WorkerConfig(drain=True)).arun(signals=False)
        loops.append(asyncio.get_running_loop())

    asyncio.run(serve())
    assert len(loops) == 4
    assert len(set(map(id, loops))) == 1
