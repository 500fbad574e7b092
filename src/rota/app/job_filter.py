"""Which jobs are meant: by their ids, or by what they are."""

from collections.abc import Iterable
from typing import Any, TypedDict

from rota.app.handle import JobHandle
from rota.app.queue_handle import QueueHandle
from rota.app.task import Task
from rota.errors import ConfigError
from rota.model.job import JobFilter, JobId, JobRecord, possible
from rota.model.keys import storable
from rota.model.options import check_name
from rota.model.states import State

Job = int | JobHandle[Any] | JobRecord
"""A job, by its id, its handle, or its record."""


class Wanted(TypedDict, total=False):
    """What jobs are to be; what is left out, or `None`, may be anything.

    `subject` is a unique key, or the beginning of some, with a `*` behind it.
    """

    state: State | str | None
    queue: str | QueueHandle | None
    task: "str | Task[..., Any, Any] | None"
    subject: str | None


def job_filter(wanted: Wanted) -> JobFilter:
    """The filter that these words mean.

    Raises:
        ConfigError: A word is not known, or a value cannot be.
    """
    if unknown := wanted.keys() - Wanted.__annotations__.keys():
        known = ", ".join(f"{name}=" for name in Wanted.__annotations__)
        message = f"jobs have no {', '.join(sorted(unknown))}; they can be found by {known}"
        raise ConfigError(message)
    queue, task = wanted.get("queue"), wanted.get("task")
    if isinstance(queue, QueueHandle):
        queue = queue.name
    if isinstance(task, Task):
        task = task.name
    return JobFilter(
        state=_state(wanted.get("state")),
        queue=None if queue is None else check_name(queue, "queue"),
        task=None if task is None else check_name(task, "task"),
        subject=_subject(wanted.get("subject")),
    )


def job_ids(jobs: Job | Iterable[Job]) -> list[JobId]:
    """The ids of jobs, each once; those that no job can have are left out.

    Raises:
        ConfigError: Something that is given is no job.
    """
    if isinstance(jobs, int | JobHandle | JobRecord):
        jobs = (jobs,)
    if isinstance(jobs, str) or not isinstance(jobs, Iterable):
        raise _no_job(jobs)
    ids = dict.fromkeys(map(_id, jobs))
    return [job for job in ids if possible(job)]


def check_count(given: int, what: str) -> int:
    """A number of jobs.

    Raises:
        ConfigError: It is not a whole number from 1 on.
    """
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        message = f"{what}: must be a whole number of at least 1, not {given!r}"
        raise ConfigError(message)
    return given


def _id(job: object) -> JobId:
    if isinstance(job, JobHandle | JobRecord):
        return job.id
    if isinstance(job, bool) or not isinstance(job, int):
        raise _no_job(job)
    return JobId(job)


def _no_job(given: object) -> ConfigError:
    kind = type(given).__name__
    return ConfigError(f"jobs are given by their ids, which are whole numbers, not by {kind}")


def _state(given: object) -> State | None:
    if given is None:
        return None
    try:
        return State(given)  # type: ignore[arg-type]  # that is what is found out
    except ValueError as error:
        message = f"state: {given!r} is not a state; the states are {', '.join(State)}"
        raise ConfigError(message) from error


def _subject(given: object) -> str | None:
    if given is None or (isinstance(given, str) and given and storable(given)):
        return given
    message = f"subject: must be a unique key such as order:42, or order:* for many, not {given!r}"
    raise ConfigError(message)
