"""Tasks of a cluster's nodes, which import this module, whatever app the worker has.

Files say what has happened.
"""

import os
import time
import uuid
from pathlib import Path
from typing import Any

from rota import PROVIDED, Again, Context, Discard, Retry, Rota, Snooze

URL = "CLUSTERED_URL"
"""The variable with a database for them."""

rota = Rota(os.environ.get(URL, "sqlite:///nobody-opens-this.db"))


def note(folder: str, name: str) -> None:
    """Leave a file."""
    (Path(folder) / name).touch()


def note_process(folder: str, name: str) -> None:
    """Leave a file that says in which process this is, and is never seen without that."""
    # An attempt that its worker takes for lost may go on beside the next one, and write the same.
    written = Path(folder) / f".{name}-{uuid.uuid4().hex}"
    written.write_text(str(os.getpid()), encoding="utf-8")
    written.rename(Path(folder) / name)


def wait_for(folder: str, name: str, ctx: Context | None = None) -> bool:
    """Wait until a file is there, or until told to stop; which it was."""
    # A test that has failed does not wait for its handlers longer than this.
    end = time.monotonic() + 30.0
    while not (Path(folder) / name).exists() and time.monotonic() < end:
        if ctx is not None and ctx.cancelled:
            return False
        time.sleep(0.01)
    return True


@rota.task(executor="dask", store_result=True)
def double(number: int) -> int:
    """Return something."""
    return 2 * number


@rota.task(executor="dask", store_result=True)
def whereabouts() -> int:
    """In which process it runs."""
    return os.getpid()


@rota.task(executor="dask")
def fail(message: str) -> None:
    """Raise."""
    raise ValueError(message)


@rota.task(executor="dask")
def surrogate() -> Discard:
    """End with a reason that UTF-8 cannot have."""
    return Discard("bad name: \udcff")


@rota.task(executor="dask")
def outcome(kind: str) -> Any:
    """End with an outcome."""
    raise {
        "discard": Discard("no use"),
        "retry": Retry("later", after=3600),
        "again": Again(after=3600),
        "snooze": Snooze(3600),
    }[kind]


@rota.task(executor="dask", store_result=True)
def tell(folder: str, ctx: Context) -> str:
    """Tell, wait, and tell more at the end."""
    ctx.progress(0.5, "half")
    ctx.log.warning("half-way")
    note(folder, "told")
    wait_for(folder, "go")
    ctx.log("the end")
    return "told"


@rota.task(executor="dask")
def linger(folder: str, number: int, ctx: Context) -> None:
    """Say that it has begun, and in which process; go on until `go`, or until told to stop."""
    note_process(folder, f"began-{number}-{ctx.attempt}")
    if not wait_for(folder, "go", ctx):
        note(folder, f"stopped-{number}")


@rota.task(executor="ray")
def linger_on_ray(folder: str, number: int, ctx: Context) -> None:
    """The same on Ray, for the command of a worker."""
    linger.function(folder, number, ctx)


@rota.task(executor="dask")
def deaf(folder: str, number: int) -> None:
    """The same without heeding anything but `go`."""
    note_process(folder, f"began-{number}")
    wait_for(folder, "go")
    note(folder, f"finished-{number}")


@rota.task(executor="dask", store_result=True)
def write(folder: str, number: int, ctx: Context, *, inside: bool = False) -> str:
    """Write in a transaction, once `go` is there; go on after it until `end` is.

    `inside`: wait for `go` in the transaction, which on SQLite keeps all others from writing.
    """
    if not inside:
        note(folder, f"began-{ctx.attempt}")
        wait_for(folder, "go")
    with ctx.transaction() as tx:
        if inside:
            note(folder, f"began-{ctx.attempt}")
            wait_for(folder, "go")
        tx.execute(f"INSERT INTO effect VALUES ({number})")
        tx.result(f"attempt {ctx.attempt}")
    note(folder, f"committed-{ctx.attempt}")
    wait_for(folder, "end")
    return "too late"


def use(url: str) -> None:
    """Let the tasks have this database."""
    rota.use(url)


@rota.task(executor="dask", dask={"resources": {"GPU": 1}}, store_result=True)
def on_gpu() -> int:
    """What needs a resource."""
    return os.getpid()


@rota.task(executor="dask")
def needy(cache: Path = PROVIDED) -> None:
    """What needs a lifespan's resource."""
