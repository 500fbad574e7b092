"""Tasks at the top level of a module: for child processes, and for workers of their own process.

A child imports this module, whatever app the worker has; `adopt` gives a test's app such a task.
"""

import asyncio
import os
import signal
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from rota import Again, BatchContext, Context, Discard, Retry, Rota, Snooze, SoftTimeout, Task

rota = Rota("sqlite:///nobody-opens-this.db")

MARK = ContextVar("MARK", default="clean")


def adopt(app: Rota, task: Task[..., Any, Any], **options: Any) -> Task[..., Any, Any]:
    """The same task in another app."""
    adopted: Task[..., Any, Any] = app.task(
        name=task.name, executor=task.executor, store_result=task.store_result, **options
    )(task.function)
    return adopted


@rota.task(executor="process", store_result=True)
def add(one: int, two: int) -> int:
    """Return something."""
    return one + two


@rota.task(executor="process", store_result=True)
def headers(ctx: Context) -> dict[str, str]:
    """Return those of the job."""
    return ctx.headers


@rota.task(executor="process")
def fork(file: str, *, ends: bool = False) -> None:
    """Leave a process behind that has all that this one has open; note its id, and end or do not."""
    if (pid := os.fork()) == 0:
        time.sleep(600)
        os._exit(0)
    Path(file).write_text(str(pid), encoding="utf-8")
    if ends:
        os._exit(3)
    time.sleep(600)


@rota.task(executor="process", store_result=True)
def whereabouts() -> int:
    """In which process it runs."""
    return os.getpid()


HELD: list[bytes] = []
"""What a handler keeps in memory."""


@rota.task(executor="process", store_result=True)
def hold(size: int) -> int:
    """Keep so many bytes; in which process."""
    HELD.append(b"x" * size)
    return os.getpid()


@rota.task(executor="process", store_result=True)
def marked() -> str:
    """What an earlier job of the same child has left in a context variable."""
    before = MARK.get()
    MARK.set("dirty")
    return before


@rota.task(executor="process", store_result=True)
def unstorable() -> Any:
    """Return what has no form in JSON."""
    return object()


@rota.task(executor="process")
def crash(how: str) -> None:
    """End the whole child process."""
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


async def _nothing() -> None: ...


@rota.task(executor="process", store_result=True)
def forgets() -> Any:
    """Return a coroutine, as a handler without its `await` does."""
    return _nothing()


@rota.task(executor="process")
def fail(message: str) -> None:
    """Raise."""
    raise ValueError(message)


@rota.task(executor="process", retry_on=OSError, discard_on=FileNotFoundError)
def pick(kind: str) -> None:
    """Raise something; a child knows the class, its parent only the name."""
    if kind == "exit":
        os._exit(3)
    raise {"busy": ConnectionError, "gone": FileNotFoundError, "wrong": ValueError}[kind](kind)


@rota.task(executor="process")
def outcome(kind: str, *, by_raising: bool, ctx: Context | None = None) -> Any:
    """End with an outcome, returned or raised; the second attempt just ends."""
    assert ctx is not None
    if ctx.attempt > 1:
        return None
    answer = {
        "discard": Discard("no use"),
        "retry": Retry("later", after=0),
        "again": Again(after=3600),
    }.get(kind, Snooze(3600))
    if by_raising:
        raise answer
    return answer


@rota.task(executor="process")
def hang(file: str) -> None:
    """Say that it has begun, and never end."""
    Path(file).write_text(str(os.getpid()), encoding="utf-8")
    while True:
        time.sleep(60)


@rota.task(executor="process", store_result=True, soft_timeout=0.3)
def overstays(ctx: Context) -> list[Any]:
    """Compute for ever; in the end say what has happened."""
    said: list[Any] = []
    try:
        with ctx.in_time():
            while True:
                pass
    except SoftTimeout as error:
        said += [type(error).__name__, ctx.hurry]
    time.sleep(0.01)
    return [*said, "cleaned up"]


@rota.task(executor="process", store_result=True, soft_timeout=0.3)
def in_time(ctx: Context) -> list[bool]:
    """Be quick in the block, and take too long after it."""
    with ctx.in_time():
        hurry = ctx.hurry
    while not ctx.hurry:
        time.sleep(0.01)
    time.sleep(0.05)
    return [hurry, ctx.hurry]


@rota.task(executor="process")
def nap(seconds: float) -> None:
    """Take some time."""
    time.sleep(seconds)


# For workers in a process of their own. Files say what has happened. ------------------------------


def note(folder: str, name: str) -> None:
    """Leave a file."""
    (Path(folder) / name).touch()


def wait_for(folder: str, name: str) -> bool:
    """Whether a file is there."""
    return (Path(folder) / name).exists()


def wait_until(folder: str, name: str) -> None:
    """Wait until a file is there."""
    while not wait_for(folder, name):
        time.sleep(0.01)


@rota.task(name="await-file")
async def await_file(folder: str, number: int) -> None:
    """Run until the test says go."""
    note(folder, f"started-{number}")
    try:
        while not wait_for(folder, "go"):  # noqa: ASYNC110 - another process leaves it
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        note(folder, f"cancelled-{number}")
        raise
    note(folder, f"finished-{number}")


@rota.task(name="thread-file")
def thread_file(folder: str, number: int) -> None:
    """The same in a thread, without looking at any Context."""
    note(folder, f"started-{number}")
    while not wait_for(folder, "go"):
        time.sleep(0.01)
    note(folder, f"finished-{number}")


@rota.task(name="process-file", executor="process")
def process_file(folder: str, number: int) -> None:
    """The same in a child process."""
    note(folder, f"started-{number}")
    while not wait_for(folder, "go"):
        time.sleep(0.01)
    note(folder, f"finished-{number}")


@rota.task(name="tell-file")
async def tell_file(folder: str, ctx: Context) -> None:
    """The first attempt tells how far it is and waits; the second one tells nothing before `go`."""
    if ctx.attempt == 1:
        ctx.progress(0.75, "first attempt")
        ctx.log("began")
    note(folder, f"started-{ctx.attempt}")
    while not wait_for(folder, "go"):  # noqa: ASYNC110 - another process leaves it
        await asyncio.sleep(0.01)
    ctx.progress(0.25, "second attempt")
    ctx.log("went on")


@rota.task(executor="process")
def tell(folder: str, *, ctx: Context | None = None) -> None:
    """Tell from a child process, wait, and tell more at the end."""
    assert ctx is not None
    for step in range(1000):
        ctx.progress(step / 1000, f"step {step}")
    ctx.log.warning("half-way")
    while not wait_for(folder, "go"):
        time.sleep(0.01)
    if wait_for(folder, "crash"):
        os._exit(3)
    ctx.progress(1, "done")
    ctx.log("the end")


@rota.task(name="batch-file", batch=3, within=30, max_attempts=3)
def batch_file(names: list[str], ctx: BatchContext) -> None:
    """The same for many jobs: names are `FOLDER:NUMBER`, all in one folder."""
    for name, one in zip(names, ctx.jobs, strict=True):
        folder, _, number = name.rpartition(":")
        note(folder, f"started-{number}-{one.attempt}")
    while not wait_for(folder, "go"):
        time.sleep(0.01)
    for name in names:
        note(folder, f"finished-{name.rpartition(':')[2]}")


@rota.task(executor="process", store_result=True)
def transact(folder: str, number: int, ctx: Context, *, inside: bool = False) -> str:
    """Write in a transaction, once `go` is there; go on after it until `end` is.

    `inside`: wait for `go` in the transaction, which on SQLite keeps all others from writing.
    """
    (Path(folder) / "pid").write_text(str(os.getpid()), encoding="utf-8")
    if not inside:
        note(folder, f"began-{ctx.attempt}")
        wait_until(folder, "go")
    with ctx.transaction() as tx:
        if inside:
            note(folder, f"began-{ctx.attempt}")
            wait_until(folder, "go")
        tx.execute(f"INSERT INTO effect VALUES ({number})")
        tx.result(f"attempt {ctx.attempt}")
    note(folder, f"committed-{ctx.attempt}")
    wait_until(folder, "end")
    return "too late"


def use(url: str) -> None:
    """Let the tasks have this database; for children, which import them anew."""
    rota.use(url)
