"""Tasks and lifespans at the top level of a module, for child processes with resources.

What happens to lifespans is written to the file that an environment variable names: a child has no
other way to tell it.
"""

import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rota import PROVIDED, Context, Rota

rota = Rota("sqlite:///nobody-opens-this.db")

DIARY = "TEST_EQUIPPED_DIARY"


def note(line: str) -> None:
    """Write down what has happened, and in which process."""
    with Path(os.environ[DIARY]).open("a", encoding="utf-8") as file:
        file.write(f"{line} {os.getpid()}\n")


@dataclass
class Model:
    """Something that takes long to load."""

    pid: int


@dataclass
class Cache:
    """Something that needs the model."""

    model: Model


def model() -> Iterator[Model]:
    """The model of a child process."""
    note("enter model")
    yield Model(os.getpid())
    note("leave model")


def cache(loaded: Model = PROVIDED) -> Iterator[Cache]:
    """Needs the model."""
    note("enter cache")
    yield Cache(loaded)
    note("leave cache")


def broken() -> Iterator[None]:
    """Cannot be entered."""
    note("enter broken")
    raise OSError("no such file")
    yield


def broken_later() -> Iterator[None]:
    """Can be entered by the first child alone."""
    if "entered" in Path(os.environ[DIARY]).read_text(encoding="utf-8"):
        raise OSError("no such file any more")
    note("entered")
    yield


def stuck() -> Iterator[None]:
    """Is not left."""
    yield
    note("leave stuck")
    time.sleep(3600)


def hangs() -> Iterator[None]:
    """Takes long to enter."""
    note("enter hangs")
    time.sleep(30)
    yield


@asynccontextmanager
async def on_loop() -> AsyncIterator[None]:
    """Not possible in a child."""
    yield


def gives_async() -> object:
    """Hides that it is not possible in a child."""
    return on_loop()


@rota.task(executor="process", store_result=True)
def predict(number: int, model: Model = PROVIDED, *, cache: Cache = PROVIDED) -> list[int]:
    """What is given, and where."""
    assert cache.model is model
    return [number, model.pid, os.getpid()]


@rota.task(executor="process", store_result=True)
def ask(ctx: Context) -> int:
    """Ask the context."""
    assert ctx.resource("cache").model is ctx.resource(Model)
    return ctx.resource(Model).pid


@rota.task(executor="process", store_result=True)
def whereabouts() -> int:
    """In which process it runs."""
    return os.getpid()
