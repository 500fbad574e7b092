"""What a worker and its driver of Ray tell each other (`ray_driver`).

It is sent as msgpack, each message with its length before it.
"""

import asyncio
from typing import Any

import msgspec

LENGTH = 4
"""Bytes that say how long a message is."""


class Hire(msgspec.Struct, tag=True):
    """Make an actor, which is called so, with these options."""

    actor: int
    options: dict[str, Any]


class Run(msgspec.Struct, tag=True):
    """Run a bundle on an actor."""

    actor: int
    bundle: bytes


class Stop(msgspec.Struct, tag=True):
    """Have a job of a bundle stopped."""

    actor: int
    key: str
    place: int


class Dismiss(msgspec.Struct, tag=True):
    """An actor is not needed any more."""

    actor: int


class Machines(msgspec.Struct, tag=True):
    """The machines that there are, by Ray's ids, and what each of them has."""

    has: dict[str, dict[str, float]]


class Hired(msgspec.Struct, tag=True):
    """An actor is there."""

    actor: int


class Told(msgspec.Struct, tag=True):
    """A report of a bundle that runs."""

    report: bytes


class Ended(msgspec.Struct, tag=True):
    """The last report of an actor's bundle."""

    actor: int
    report: bytes


class Lost(msgspec.Struct, tag=True):
    """An actor is gone, with all it ran, or was never there."""

    actor: int
    why: str


class Failed(msgspec.Struct, tag=True):
    """There is no cluster."""

    why: str


Order = Hire | Run | Stop | Dismiss
"""From the worker to the driver."""

News = Machines | Hired | Told | Ended | Lost | Failed
"""From the driver to the worker."""


def framed(message: Order | News) -> bytes:
    """As it travels."""
    said = msgspec.msgpack.encode(message)
    return len(said).to_bytes(LENGTH, "big") + said


async def frame(reader: asyncio.StreamReader) -> bytes | None:
    """The next message; none where the other process has ended."""
    try:
        return await reader.readexactly(int.from_bytes(await reader.readexactly(LENGTH), "big"))
    except (asyncio.IncompleteReadError, OSError):
        return None
