"""`rota[sentry]`: enqueues and runs, for Sentry: spans, exceptions, check-ins of cron entries.

    sentry_sdk.init(…)
    instrument(rota)

An enqueue is a span `queue.publish`, if there is a transaction around it; its trace travels with
the job, in its headers. A run is a transaction with a span `queue.process`, in the same trace. Each
failed attempt is reported with its exception. Args are never sent.

A cron entry is a monitor. Its check-in belongs to the job that the entry has made, not to one
attempt: it is in progress until the job is completed (`ok`) or will not be (`error`).
"""

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5
from weakref import WeakSet

import msgspec
import sentry_sdk
from sentry_sdk.crons import capture_checkin
from sentry_sdk.utils import event_from_exception

from rota.app.app import Rota
from rota.app.context import RUN, BatchContext, Context
from rota.app.middleware import Crossing
from rota.app.suspended import Suspended
from rota.app.task import EnqueueCall
from rota.cron.times import NICKNAMES
from rota.errors import ConfigError
from rota.events import JobSettled, JobStarted
from rota.model.headers import MADE_BY, carrying, decoded
from rota.model.job import ClaimedJob, JobId
from rota.model.settlement import RemoteError
from rota.model.states import Move
from rota.outcome import Again, Outcome, Snooze

if TYPE_CHECKING:
    from sentry_sdk.tracing import Span

    from rota.cron.entry import CronEntry

ORIGIN = "auto.queue.rota"
"""What says in Sentry that Rota has made a span."""

LONGEST_SLUG = 50
"""Characters of a monitor's name."""

_instrumented: "WeakSet[Rota]" = WeakSet()


def instrument(
    app: Rota, *, cron: bool = True, margin: int | None = None, max_runtime: int | None = None
) -> None:
    """Tell Sentry of an app's enqueues, runs and cron entries; call it where the app is made.

    Then child processes tell it, too.

    Args:
        app: The app.
        cron: Whether jobs of cron entries check in.
        margin: Minutes by which a check-in may be late; by default a minute more than the entry's
            jitter.
        max_runtime: Minutes that a check-in may be in progress, with all attempts; by default
            Sentry's own 30.

    Raises:
        ConfigError: The app is already instrumented.
    """
    if app in _instrumented:
        message = (
            "rota.sentry: this app is already instrumented; everything would be reported twice"
        )
        raise ConfigError(message)
    _instrumented.add(app)
    app.middleware.twins_around_enqueue(_around_enqueue, _around_aenqueue)
    app.around_run(_around_run)
    app.middleware.cross("sentry", Crossing(_sent, _received))
    if cron:
        monitors = _Monitors(app, margin, max_runtime)
        app.on(JobStarted)(lambda event: monitors.tell(event.job, "in_progress"))
        app.on(JobSettled)(lambda event: monitors.tell(event.job, checked(event.settlement.move)))


def checked(move: Move) -> str | None:
    """The status of a check-in after this move; `None`: the job goes on later."""
    match move:
        case Move.COMPLETE | Move.AGAIN:
            return "ok"
        case Move.DISCARD | Move.CANCEL:
            return "error"
        case _:
            return None


# Enqueueing ------------------------------------------------------------------------------------


def _around_enqueue(
    call: EnqueueCall, call_next: Callable[[EnqueueCall], list[JobId]]
) -> list[JobId]:
    with _publishing(call) as (span, carrier):
        jobs = call_next(carrier)
        _published(span, call, jobs)
        return jobs


async def _around_aenqueue(
    call: EnqueueCall, call_next: Callable[[EnqueueCall], Awaitable[list[JobId]]]
) -> list[JobId]:
    with _publishing(call) as (span, carrier):
        jobs = await call_next(carrier)
        _published(span, call, jobs)
        return jobs


@contextmanager
def _publishing(call: EnqueueCall) -> "Iterator[tuple[Span, EnqueueCall]]":
    """A span, and the call with the span's trace in the headers."""
    with sentry_sdk.start_span(op="queue.publish", name=call.task.name, origin=ORIGIN) as span:
        span.set_data("messaging.system", "rota")
        span.set_data("messaging.destination.name", call.options.queue)
        yield span, call.using(headers=carrying(call.options.headers, _sent()))


def _published(span: "Span", call: EnqueueCall, jobs: list[JobId]) -> None:
    if call.many:
        span.set_data("messaging.batch.message_count", len(jobs))
        return
    [job], [(args, kwargs)] = jobs, call.jobs
    span.set_data("messaging.message.id", str(job))
    span.set_data("messaging.message.body.size", len(call.task.codec.encode(args, kwargs)))


# Running ---------------------------------------------------------------------------------------


async def _around_run(run: Context | BatchContext, call_next: Callable[[], Awaitable[Any]]) -> Any:
    raised: BaseException | None = None
    value: Any = None
    # An outcome such as a Snooze is no error, and must not pass through the spans as one.
    with _scope(run), _processing(run) as spans:
        try:
            value = await call_next()
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised = error
        said = value if isinstance(value, Outcome) else raised
        for span in spans:
            span.set_status(_status(said))
        if isinstance(said, Exception) and not isinstance(said, Outcome):
            _report(said)
    if raised is not None:
        raise raised
    return value


@contextmanager
def _scope(run: Context | BatchContext | None) -> "Iterator[None]":
    """What handlers send from here on belongs to this run, and to no other."""
    with sentry_sdk.isolation_scope() as scope:
        scope.clear_breadcrumbs()
        if run is not None:
            scope.set_tag("rota.task", run.task)
        if isinstance(run, Context):
            scope.set_tag("rota.queue", run.queue)
            scope.set_context("rota", {"job": run.job_id, "attempt": run.attempt})
        yield


@contextmanager
def _processing(run: Context | BatchContext) -> "Iterator[tuple[Span, Span]]":
    """A transaction in the trace of the enqueue, and the span in it."""
    headers = run.headers if isinstance(run, Context) else {}
    transaction = sentry_sdk.continue_trace(
        headers, op="queue.task.rota", name=run.task, source="task", origin=ORIGIN
    )
    with (
        sentry_sdk.start_transaction(transaction) as around,
        sentry_sdk.start_span(op="queue.process", name=run.task, origin=ORIGIN) as span,
    ):
        span.set_data("messaging.system", "rota")
        if isinstance(run, Context):
            waited = time.time() - run.enqueued_at.timestamp()
            span.set_data("messaging.message.id", str(run.job_id))
            span.set_data("messaging.destination.name", run.queue)
            span.set_data("messaging.message.body.size", len(msgspec.json.encode(run.args)))
            span.set_data("messaging.message.receive.latency", round(1000 * waited, 3))
            span.set_data("messaging.message.retry.count", run.attempt - 1)
        else:
            span.set_data("messaging.batch.message_count", len(run.jobs))
        yield around, span


def _status(said: BaseException | None) -> str:
    match said:
        case None | Snooze() | Suspended() | Again():
            return "ok"
        case asyncio.CancelledError():
            return "cancelled"
        case _:
            return "internal_error"


def _report(error: Exception) -> None:
    """Report an exception; one of a child process by its own name."""
    mechanism = {"type": "rota", "handled": False}
    event, hint = event_from_exception(
        error, client_options=sentry_sdk.get_client().options, mechanism=mechanism
    )
    if isinstance(error, RemoteError):
        module, _, name = error.exception.rpartition(".")
        [*_, told] = event.get("exception", {})["values"]
        told.update(type=name, module=module, value=error.message)
        event.setdefault("extra", {})["traceback"] = error.traceback
    sentry_sdk.capture_event(event, hint=hint)


# What travels: with a job, and on to a child process ----------------------------------------------


def _sent() -> dict[str, str]:
    """The current trace, as texts."""
    found = {"sentry-trace": sentry_sdk.get_traceparent(), "baggage": sentry_sdk.get_baggage()}
    return {name: text for name, text in found.items() if text}


def _received(sent: Mapping[str, str], call_next: Callable[[], Any]) -> Any:
    """Run a handler in a child process within the trace of its run."""
    with _scope(RUN.get()):
        sentry_sdk.continue_trace(dict(sent))
        return call_next()


# Cron ------------------------------------------------------------------------------------------


class _Monitors:
    """Checks in for the jobs of an app's cron entries."""

    def __init__(self, app: Rota, margin: int | None, max_runtime: int | None) -> None:
        self._app = app
        self._margin = margin
        self._max_runtime = max_runtime

    def tell(self, job: ClaimedJob, status: str | None) -> None:
        """Tell how far a job is, if an entry has made it."""
        if status is None or job.headers is None:
            return
        name = decoded(job.headers).get(MADE_BY)
        if name is not None:
            entry = self._app.cron.declared.get(name)
            capture_checkin(
                monitor_slug=slug(name),
                # All attempts are of one check-in.
                check_in_id=uuid5(NAMESPACE_OID, f"{name} {job.id} {job.enqueued_at}").hex,
                status=status,
                monitor_config=None if entry is None else self._config(entry),
            )

    def _config(self, entry: "CronEntry") -> Any:
        """What makes the monitor in Sentry, or changes it; Sentry knows no seconds."""
        expression = entry.expression.strip()
        fields = NICKNAMES.get(expression.lower(), expression).split()
        margin = math.ceil(entry.jitter / 60) + 1 if self._margin is None else self._margin
        config = {
            "schedule": {"type": "crontab", "value": " ".join(fields[-5:])},
            "timezone": entry.timezone,
            "checkin_margin": margin,
        }
        return config if self._max_runtime is None else config | {"max_runtime": self._max_runtime}


def slug(name: str) -> str:
    """A cron entry's name as Sentry takes it for a monitor."""
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:LONGEST_SLUG]
