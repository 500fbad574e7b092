"""Retrying, cancelling, deleting: which jobs, and in how many steps.

Acting locks the lanes in which the jobs lie, and a caller's transaction would keep workers from
them until it ends. So it goes on in short transactions of its own, of at most `BATCH` jobs each.
Jobs that a filter finds are acted on only if they are still in the state in which they were found.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar

from rota.app.job_filter import Job, Wanted, check_count, job_filter, job_ids
from rota.errors import ConfigError
from rota.model.job import JobFilter, JobId, JobRecord
from rota.model.states import State
from rota.store.operation import Operation

T = TypeVar("T")

BATCH = 500
"""Jobs of a transaction that changes jobs, and of the pages in which they are found."""

Steps = Generator[Operation[Any], Any, T]
"""What it yields is run, in sync or in async code."""

Changed = dict[JobId, State]
"""The jobs that were changed, and for cancelling how they are now."""

DELETABLE = tuple(state for state in State if state is not State.RUNNING)


class Kind(NamedTuple):
    """A way of acting: its words, the states it can act on, and those it finds by itself.

    In the order in which a job goes through them: what moves on meanwhile is found a little later.
    """

    name: str
    done: str
    able: tuple[State, ...]
    usual: tuple[State, ...]


CANCELLABLE = (State.SCHEDULED, State.RETRYABLE, State.AVAILABLE, State.RUNNING)

CANCEL = Kind("cancel", "cancelled", CANCELLABLE, CANCELLABLE)
DELETE = Kind("delete", "deleted", DELETABLE, DELETABLE)
RETRY = Kind(
    "retry", "retried", tuple(state for state in DELETABLE if state is not State.AVAILABLE),
    (State.DISCARDED,),
)  # fmt: skip


class Act(Protocol):
    """An operation of the store that changes jobs, those alone that are in a state."""

    def __call__(self, jobs: list[JobId], *, only: State | None = None) -> Operation[Any]:
        """Change them; the ids of those that were, as a list or with their states."""
        ...


def acting(
    kind: Kind,
    find: Callable[[JobFilter], Operation[list[JobRecord]]],
    act: Act,
    jobs: Job | Iterable[Job] | None,
    *,
    limit: int | None,
    wanted: Wanted,
) -> Steps[Changed]:
    """Act on these jobs, or on up to `limit` that are found.

    Raises:
        ConfigError: Neither or both are given, a value cannot be, or jobs in that state cannot be
            acted on so.
    """
    if jobs is None:
        said = any(value is not None for value in wanted.values())
        states = states_of(kind, job_filter(wanted).state, said=said)
        if limit is not None:
            check_count(limit, "limit")
        return _on_found(find, act, states, limit, job_filter(wanted))
    if wanted:
        message = f"{kind.name}: give either jobs or filters, not both"
        raise ConfigError(message)
    return _on_given(act, job_ids(jobs))


def _on_given(act: Act, jobs: list[JobId]) -> Steps[Changed]:
    changed: Changed = {}
    for first in range(0, len(jobs), BATCH):
        _add(changed, (yield act(jobs[first : first + BATCH])))
    return changed


def _on_found(
    find: Callable[[JobFilter], Operation[list[JobRecord]]],
    act: Act,
    states: Sequence[State],
    limit: int | None,
    wanted: JobFilter,
) -> Steps[Changed]:
    changed: Changed = {}
    for state in states:
        wanted = replace(wanted, state=state, after=None)
        while (left := BATCH if limit is None else limit - len(changed)) > 0:
            wanted = replace(wanted, limit=min(left, BATCH))
            page = yield find(wanted)
            if page:
                _add(changed, (yield act([job.id for job in page], only=state)))
            if len(page) < wanted.limit:
                break
            wanted = replace(wanted, after=page[-1].id)
    return changed


def states_of(kind: Kind, state: State | None, *, said: bool) -> Sequence[State]:
    """The states of the jobs that are to be found; `said`: there is something to find them by.

    Raises:
        ConfigError: There is nothing, or jobs in that state cannot be acted on so.
    """
    if not said:
        message = (
            f"{kind.name}: say which jobs: give their ids, or state=, queue=, task= or subject= to "
            "find them by"
        )
        raise ConfigError(message)
    if state is None:
        return kind.usual
    if state not in kind.able:
        message = f"{kind.name}: {state} jobs cannot be {kind.done}; only these can: {', '.join(kind.able)}"
        raise ConfigError(message)
    return (state,)


def _add(changed: Changed, answer: Changed | list[JobId]) -> None:
    """Note what a step has changed; only cancelling says how the jobs are now."""
    changed.update(answer if isinstance(answer, dict) else dict.fromkeys(answer, State.AVAILABLE))
