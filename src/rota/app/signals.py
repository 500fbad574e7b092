"""Sending signals to jobs, written once for sync and async code."""

from collections.abc import Generator
from typing import Any

from rota.app.job_steps import ANYTHING, within
from rota.database.database import Database
from rota.database.waiting import not_found
from rota.errors import ArgsError, ConfigError, JobEnded
from rota.model.job import JobId, possible
from rota.model.options import check_name
from rota.store.operation import Operation

STAGED = 1_000
"""Due jobs that are staged at the most where a signal has made one due."""


def signalling(
    database: Database, job: JobId, name: str, payload: object, told: str | None, *, own: bool
) -> Generator[Operation[Any], Any, None]:
    """The operations that send a signal; `own`: each commits by itself, so the job wakes at once.

    Raises:
        JobNotFound: There is no such job.
        JobEnded: It has ended.
        ArgsError: The payload is no JSON, or too large.
        ConfigError: The name or the id cannot be used.
    """
    if not possible(job):
        raise not_found(job)
    check_name(name, "signal")
    if "#" in name:
        message = f"signal {name!r}: a name cannot contain #"
        raise ConfigError(message)
    if told is not None:
        check_name(told, "id of a signal")
    try:
        text = ANYTHING.encode(payload)
    except ArgsError as error:
        message = f"signal {name!r}: its payload cannot be stored: {error}"
        raise ArgsError(message) from error
    text = within(text, f"signal {name!r}: its payload")
    state = yield database.store.memory.signal(job, name, text, told)
    if state is None:
        raise not_found(job)
    if state.finished:
        message = f"job {job} was {state}: it takes no more signals"
        raise JobEnded(message)
    if database.confined:
        yield database.store.testing.deliver(job)
    elif own:
        yield database.store.stage(STAGED)
