"""The app of the swarm: tasks of all kinds, whose handlers write to the ledger.

A job's number says how long it takes and how it goes; so a seed says that, too.
"""

import asyncio
import itertools
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

import psycopg

from rota import Again, Backoff, BatchContext, Context, Limit, Rota, Snooze
from tests.swarm.ledger import Ledger

URL = os.environ["SWARM_URL"]
ledger = Ledger(Path(os.environ["SWARM_FOLDER"]) / "ledger", os.environ["SWARM_NAME"])
LONG = int(os.environ["SWARM_LONG"])
rota = Rota(URL, retention=float(os.environ["SWARM_RETENTION"]))

calls = itertools.count()
"""Numbers of the calls of handlers in this process."""

ALWAYS = 30_000
"""Attempts: whatever dies, the job comes back."""

SOON = Backoff(first=0.2, cap=1.0, attempts=ALWAYS)
QUEUES = ("plain", "keyed", "effects")
EFFECT = "INSERT INTO effect (number) VALUES (%s)"


@contextmanager
def noted(number: int, context: Context, key: str = "-") -> Iterator[None]:
    """Write down the beginning of a run, and how it ends."""
    call = next(calls)
    ledger.say("start", call, number, context.attempt, context.job_id, key)
    try:
        yield
    except BaseException:
        ledger.say("left", call)
        raise
    ledger.say("end", call)


def pause(number: int) -> float:
    """Seconds that a job takes: nearly nothing, or a while."""
    return 0.3 if number % 97 == 0 else 0.001


def long_pause(number: int) -> float:
    """The same, and some take longer than a session lasts without a sign of life."""
    return 10.0 if number % LONG == 0 else pause(number)


@rota.task(queue="plain", retry=SOON)
async def quick(number: int, context: Context) -> None:
    with noted(number, context):
        await asyncio.sleep(pause(number))


@rota.task(queue="plain", retry=SOON)
def thread(number: int, context: Context) -> None:
    with noted(number, context):
        time.sleep(pause(number))


@rota.task(queue="plain", retry=SOON, executor="process")
def process(number: int, context: Context) -> None:
    with noted(number, context):
        time.sleep(pause(number))


@rota.task(queue="plain", retry=SOON, batch=50, within=0.05)
async def together(numbers: list[int], context: BatchContext) -> None:
    with ExitStack() as stack:
        for number, job in zip(numbers, context.jobs, strict=True):
            stack.enter_context(noted(number, job))
        await asyncio.sleep(0.005)


@rota.task(queue="plain", retry=SOON)
async def flaky(number: int, context: Context) -> None:
    """Fails once, or snoozes now and then, before it ends."""
    with noted(number, context):
        if number % 3 == 0 and context.attempt == 1:
            message = "the first attempt fails"
            raise RuntimeError(message)
        if number % 3 == 1 and time.time_ns() % 2:
            raise Snooze(0.1)


@rota.task(queue="keyed", retry=SOON, limit=Limit("single:{gate}", running=1))
async def single(number: int, gate: int, context: Context) -> None:
    with noted(number, context, f"single:{gate}"):
        await asyncio.sleep(long_pause(number))


@rota.task(queue="keyed", retry=SOON, limit=Limit("crowd:{gate}", running=3))
def crowd(number: int, gate: int, context: Context) -> None:
    """Stops when it is asked to: its place is given to another job then."""
    with noted(number, context, f"crowd:{gate}"):
        if context.wait_cancelled(long_pause(number)):
            message = "the worker has to give the job back"
            raise RuntimeError(message)


@rota.task(queue="keyed", retry=SOON, limit=Limit("rate:{gate}", per_second=40))
async def rated(number: int, gate: int, context: Context) -> None:  # noqa: ARG001 - a part of its key
    with noted(number, context):
        await asyncio.sleep(0)


@rota.task(queue="keyed", retry=SOON, fair="tenant:{gate}")
async def fair(number: int, gate: int, context: Context) -> None:  # noqa: ARG001 - a part of its key
    with noted(number, context):
        await asyncio.sleep(pause(number))


@rota.task(queue="plain", retry=SOON, unique="subject:{gate}")
async def subject(number: int, gate: int, context: Context) -> Again | None:
    with noted(number, context, f"subject:{gate}"):
        await asyncio.sleep(long_pause(number))
    return Again(after=0.1) if number % 5 == 0 and time.time_ns() % 2 else None


@rota.task(queue="effects", retry=SOON)
def charge(number: int, context: Context) -> None:
    with noted(number, context):
        if number % 4:
            with context.transaction() as tx:
                tx.execute(EFFECT, [number])
                time.sleep(pause(number) / 2)
        else:
            with psycopg.connect(URL) as conn, context.transaction(conn):
                conn.execute(EFFECT, [number])


@rota.task(queue="effects", retry=SOON)
async def acharge(number: int, context: Context) -> None:
    with noted(number, context):
        async with context.transaction() as tx:
            await tx.aexecute(EFFECT, [number])
            await asyncio.sleep(pause(number) / 2)


@rota.cron("*/2 * * * * *", missed="all", due="at")
@rota.task(queue="plain", retry=SOON)
async def tick(at: datetime, context: Context) -> None:
    with noted(-int(at.timestamp()), context):
        await asyncio.sleep(0)


@rota.task(queue="plain", max_attempts=2)
async def poison(number: int, context: Context) -> None:
    with noted(number, context):
        os.kill(os.getpid(), signal.SIGKILL)
