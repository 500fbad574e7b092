"""From the outcome of a run to what is written: the whole retry policy, on one screen.

`decide` is a pure function. Workers call it with what the handler returned or raised; the stores
write the `Settlement` that comes out, and only if the lease it names is still held.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from traceback import format_exception
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rota.errors import RotaError
from rota.model.backoff import Backoff, RetryPolicy
from rota.model.durations import seconds
from rota.model.headers import NodeId, node_of
from rota.model.job import ClaimedJob, Following, JobId, LeaseId, Order
from rota.model.states import Move
from rota.outcome import Again, Discard, Retry, Snooze

if TYPE_CHECKING:
    from rota.model.flow import Graft
    from rota.model.memory import Pause

TRACEBACK_LIMIT = 8_000
"""Characters of a traceback that are kept: its end, where the cause stands."""


class Settlement(NamedTuple):
    """What is to be written about one run.

    `delay` is in seconds and used by retry, snooze and release. `keep` is how many seconds a
    finished job stays readable; 0: it leaves no row behind. Where it is `None`, a discarded job
    stays until it is deleted or retried, and others leave no row. `result` and `error` are JSON
    text. `unique_key` is the job's; `at` is when it comes round again, else after `delay`.
    `unknown`: the job is released since the worker does not know its task; from then on it is for
    those alone that do. `successor` is enqueued in the same transaction, if the settlement is
    written. `pauses` are what a job that snoozes sleeps or waits for; a round that ends forgets
    what it `remembers`, which is also said of unique jobs. `node` is what the job belongs to in a
    flow, `given` its result as JSON text, if others are given it, and `graft` what its run has
    added to the flow.
    """

    job: JobId
    lease: LeaseId
    move: Move
    delay: float = 0.0
    keep: float | None = None
    result: str | None = None
    error: str | None = None
    unique_key: str | None = None
    at: datetime | None = None
    unknown: bool = False
    successor: Order | None = None
    pauses: "tuple[Pause, ...]" = ()
    remembers: bool = False
    node: NodeId | None = None
    given: str | None = None
    graft: "Graft | None" = None


class Completions(NamedTuple):
    """Jobs of one lease that have completed alike: without results, unique keys and successors.

    That is how most jobs end, so many of them are told of at once. `keep` and `node` are those of a
    settlement.
    """

    lease: LeaseId
    keep: float | None
    jobs: Sequence[JobId]
    node: NodeId | None = None


class Settled(list[JobId]):
    """The ids of a batch that were refused.

    Attributes:
        following: The successors that were enqueued with the others.
        decided: The nodes of flows of which nothing is left to be decided.
    """

    def __init__(
        self,
        refused: Iterable[JobId] = (),
        following: Sequence[Following] = (),
        decided: Sequence[NodeId] = (),
    ) -> None:
        super().__init__(refused)
        self.following = tuple(following)
        self.decided = frozenset(decided)


class RemoteError(Exception):
    """An exception of another process, as far as text can tell."""

    def __init__(self, exception: str, message: str, traceback: str = "") -> None:
        self.exception = exception
        self.message = message
        self.traceback = traceback
        super().__init__(f"{exception}: {message}")


class ChildDied(RotaError, RemoteError):
    """The child process ended in the middle of a job; passed to retry policies."""

    def __init__(self, code: int | None) -> None:
        how = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
        super().__init__("rota.ChildDied", f"the child process ended with {how} during this job")


class NodeLost(RotaError, RemoteError):
    """The node of a cluster that ran a job was lost; passed to retry policies."""

    def __init__(self, what: str) -> None:
        super().__init__("rota.NodeLost", what)


def completed(job: ClaimedJob, keep: float | None, result: str | None = None) -> Settlement:
    """The handler returned."""
    return Settlement(
        job.id, job.lease, Move.COMPLETE, 0.0, keep, result, None, job.unique_key,
        node=node_of(job.headers),
    )  # fmt: skip


def separate(completions: Iterable[Completions]) -> Iterator[Settlement]:
    """A settlement for each of these jobs."""
    for lease, keep, jobs, node in completions:
        for job in jobs:
            yield Settlement(job, lease, Move.COMPLETE, keep=keep, node=node)


def together(
    settlements: Iterable[Settlement], completions: Iterable[Completions]
) -> tuple[list[Settlement], list[Completions]]:
    """The same, with all jobs that completed alike in one place: others' settlements, and these."""
    alike: dict[tuple[LeaseId, float | None, NodeId | None], list[JobId]] = {}
    for lease, keep, jobs, node in completions:
        alike.setdefault((lease, keep, node), []).extend(jobs)
    others = []
    for settlement in settlements:
        if (
            settlement.move is Move.COMPLETE
            and settlement.result is None
            and settlement.unique_key is None
            and settlement.successor is None
            and settlement.given is None
            and settlement.graft is None
        ):
            kind = settlement.lease, settlement.keep, settlement.node
            alike.setdefault(kind, []).append(settlement.job)
        else:
            others.append(settlement)
    return others, [
        Completions(lease, keep, jobs, node) for (lease, keep, node), jobs in alike.items()
    ]


def cancelled(job: ClaimedJob, keep: float | None) -> Settlement:
    """The job has stopped on request."""
    return Settlement(
        job.id,
        job.lease,
        Move.CANCEL,
        0.0,
        keep,
        unique_key=job.unique_key,
        node=node_of(job.headers),
    )


def released(job: ClaimedJob, delay: float = 0.0) -> Settlement:
    """The job did not run here and goes back for other workers. No attempt is spent."""
    return Settlement(
        job.id, job.lease, Move.RELEASE, delay, unique_key=job.unique_key, node=node_of(job.headers)
    )


def passed_on(job: ClaimedJob) -> Settlement:
    """The worker does not know the job's task: it goes to those that do. No attempt is spent."""
    return released(job)._replace(unknown=True)


def decide(
    job: ClaimedJob,
    raised: BaseException,
    policy: RetryPolicy,
    keep: float | None = None,
    *,
    now: datetime,
) -> Settlement:
    """The settlement that follows from an exception, or from an outcome, raised or returned.

    `keep` counts if the job is discarded. `now` is when a failed attempt has failed.
    """
    match raised:
        case Snooze():
            return Settlement(
                job.id, job.lease, Move.SNOOZE, raised.after, unique_key=job.unique_key,
                node=node_of(job.headers),
            )  # fmt: skip
        case Again(after=after, at=at):
            return Settlement(
                job.id, job.lease, Move.AGAIN, after or 0.0, unique_key=job.unique_key, at=at,
                node=node_of(job.headers),
            )  # fmt: skip
        case Discard():
            return _discard(job, raised, keep, now)
        case _ if job.attempt >= job.max_attempts:
            return _discard(job, raised, keep, now)
        case Retry(after=float(after)):
            wait: float | None = after
        case _:
            try:
                wait = _wait(policy, job.attempt, raised)
            except Exception as broken:  # noqa: BLE001 - users' code
                # A policy that fails must not cost the job: fall back to the default waits.
                broken.__context__ = raised
                raised, wait = broken, Backoff().wait(job.attempt)
    if wait is None:
        return _discard(job, raised, keep, now)
    error = error_text(job.attempt, raised, now=now)
    return Settlement(
        job.id, job.lease, Move.RETRY, wait, error=error, unique_key=job.unique_key,
        node=node_of(job.headers),
    )  # fmt: skip


def _wait(policy: RetryPolicy, attempt: int, raised: BaseException) -> float | None:
    if isinstance(policy, Backoff):
        return policy.wait(attempt)
    wait: float | timedelta | None = policy(attempt, raised)
    return None if wait is None else seconds(wait, "the retry policy's answer")


def _discard(
    job: ClaimedJob, raised: BaseException, keep: float | None, now: datetime
) -> Settlement:
    error = error_text(job.attempt, raised, now=now)
    return Settlement(
        job.id, job.lease, Move.DISCARD, keep=keep, error=error, unique_key=job.unique_key,
        node=node_of(job.headers),
    )  # fmt: skip


def error_text(attempt: int, raised: BaseException, *, now: datetime) -> str:
    """One failed attempt as JSON, with its traceback; NUL and lone surrogates are made visible."""
    if isinstance(raised, RemoteError):
        return error_json(attempt, raised.exception, raised.message, raised.traceback, now=now)
    traceback = "".join(format_exception(type(raised), raised, _handlers(raised.__traceback__)))
    try:
        message = str(raised)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide that the job failed
        message = "(the exception's message cannot be read)"
    kind = type(raised)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return error_json(attempt, name, message, traceback, now=now)


def _handlers(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the handler on, without the calls inside Rota that led to it."""
    inner = traceback
    while inner is not None and inner.tb_frame.f_globals.get("__name__", "").startswith("rota."):
        inner = inner.tb_next
    return inner or traceback


def error_json(
    attempt: int, exception: str, message: str, traceback: str = "", *, now: datetime
) -> str:
    """One failed attempt as JSON text."""
    entry = {
        "attempt": attempt,
        "at": now,
        "exception": exception,
        "message": _storable(message)[:TRACEBACK_LIMIT],
        "traceback": _storable(traceback)[-TRACEBACK_LIMIT:],
    }
    return msgspec.json.encode(entry).decode()


def _storable(text: str) -> str:
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
