"""`rota[otel]`: OpenTelemetry spans of what is enqueued and of what runs.

    instrument(rota)

An enqueue is a span `send TASK`, and its context travels with the job, in its headers. A run is a
span `process TASK`, in the worker, current while the handler runs, in a child process too. Names
and attributes are those of the semantic conventions for messaging, where they have one. Nothing
else has a span: no claim and no loop.

You choose how a run is tied to its enqueue. As a child, it is in the trace of the request that
enqueued it; but a job for tomorrow makes a trace that lasts for days, and a hundred retries one
with a hundred branches. As a trace of its own, with a link, it is found from both sides.
`link="auto"` makes it a child where people would look for it there.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, get_args
from weakref import WeakSet

from opentelemetry import context as contexts
from opentelemetry import propagate, trace
from opentelemetry.context import Context as TraceContext
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
)

from rota.app.app import Rota
from rota.app.context import BatchContext, Context
from rota.app.middleware import Crossing
from rota.app.suspended import Suspended
from rota.app.task import EnqueueCall
from rota.errors import ConfigError
from rota.model.chosen import retries
from rota.model.headers import carrying
from rota.model.job import JobId
from rota.model.settlement import RemoteError
from rota.model.states import Move
from rota.outcome import Again, Discard, Outcome, Retry, Snooze

How = Literal["auto", "parent", "link"]
"""How a run hangs together with its enqueue: as its child, or by a link."""

SOON = 60.0
"""Seconds after its enqueue within which a run is a child of it, with `auto`."""

MOST_LINKS = 128
"""Links of one span: as many as the SDK keeps, unless it is told otherwise."""

_instrumented: "WeakSet[Rota]" = WeakSet()


def instrument(
    app: Rota, *, link: How = "auto", tracer_provider: TracerProvider | None = None
) -> None:
    """Make spans of an app's enqueues and runs; call it where the app is made.

    Then child processes make spans, too.

    Args:
        app: The app.
        link: `parent`: a run is a child of its enqueue; `link`: it begins a trace of its own, with
            a link. `auto`: a child on the first attempt, within 60 seconds of the enqueue, and a
            link otherwise. A call of a batch handler always has links.
        tracer_provider: By default the global one.

    Raises:
        ConfigError: `link` is not one of these words, or the app is already instrumented.
    """
    if link not in get_args(How):
        message = f"link: must be one of {', '.join(get_args(How))}, not {link!r}"
        raise ConfigError(message)
    if app in _instrumented:
        message = (
            "rota.otel: this app is already instrumented; each of its spans would be sent twice"
        )
        raise ConfigError(message)
    _instrumented.add(app)
    spans = _Spans(app, link, tracer_provider)
    app.middleware.twins_around_enqueue(spans.around_enqueue, spans.around_aenqueue)
    app.around_run(spans.around_run)
    app.middleware.cross("otel", Crossing(_sent, _received))


def linked(how: How, *, attempt: int, age: float) -> bool:
    """Whether a run of a single job has a link to its enqueue, and is no child of it.

    Args:
        how: What was chosen.
        attempt: Which attempt the run is, from 1.
        age: Seconds since the enqueue.
    """
    if how == "auto":
        return attempt > 1 or age > SOON
    return how == "link"


class _Spans:
    """Makes the spans of one app."""

    def __init__(self, app: Rota, how: How, provider: TracerProvider | None) -> None:
        self._app = app
        self._how: How = how
        self._tracer = trace.get_tracer("rota", tracer_provider=provider)

    # Enqueueing ------------------------------------------------------------------------------

    def around_enqueue(
        self, call: EnqueueCall, call_next: Callable[[EnqueueCall], list[JobId]]
    ) -> list[JobId]:
        with self._sending(call) as (span, carrier):
            return _sent_as(span, call, call_next(carrier))

    async def around_aenqueue(
        self, call: EnqueueCall, call_next: Callable[[EnqueueCall], Awaitable[list[JobId]]]
    ) -> list[JobId]:
        with self._sending(call) as (span, carrier):
            return _sent_as(span, call, await call_next(carrier))

    @contextmanager
    def _sending(self, call: EnqueueCall) -> Iterator[tuple[Span, EnqueueCall]]:
        """A span, and the call with the span's context in the headers."""
        attributes: dict[str, Any] = {
            **_attributes("send", call.task.name),
            "messaging.destination.name": call.options.queue,
        }
        if call.many:
            attributes["messaging.batch.message_count"] = len(call.jobs)
        with self._tracer.start_as_current_span(
            f"send {call.task.name}",
            kind=SpanKind.PRODUCER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span, call.using(headers=carrying(call.options.headers, _sent()))
            except Exception as error:
                _fail(span, error)
                raise

    # Running ---------------------------------------------------------------------------------

    async def around_run(
        self, run: Context | BatchContext, call_next: Callable[[], Awaitable[Any]]
    ) -> Any:
        with self._processing(run) as span:
            try:
                value = await call_next()
            except BaseException as error:
                self._end(span, run, error)
                raise
            self._end(span, run, value if isinstance(value, Outcome) else None)
            return value

    @contextmanager
    def _processing(self, run: Context | BatchContext) -> Iterator[Span]:
        """A current span, which hangs together with the enqueues of its jobs."""
        jobs = run.jobs if isinstance(run, BatchContext) else (run,)
        attributes = _attributes("process", run.task)
        if len(queues := {job.queue for job in jobs}) == 1:
            [attributes["messaging.destination.name"]] = queues
        parent, links = TraceContext(), []
        if isinstance(run, Context):
            attributes["messaging.message.id"] = str(run.job_id)
            attributes["rota.job.attempt"] = run.attempt
            parent = _received_context(run.headers)
            age = time.time() - run.enqueued_at.timestamp()
            if linked(self._how, attempt=run.attempt, age=age):
                links = _links([parent])
                # Not its trace, but its baggage.
                parent = trace.set_span_in_context(trace.INVALID_SPAN, parent)
        else:
            attributes["messaging.batch.message_count"] = len(jobs)
            links = _links(_received_context(job.headers) for job in jobs)
        span = self._tracer.start_span(
            f"process {run.task}", parent, SpanKind.CONSUMER, attributes, links
        )
        token = contexts.attach(trace.set_span_in_context(span, parent))
        try:
            yield span
        finally:
            contexts.detach(token)
            span.end()

    def _end(self, span: Span, run: Context | BatchContext, said: BaseException | None) -> None:
        """Say how a run has ended: by this exception or outcome, or well."""
        if span.is_recording():
            span.set_attribute("rota.outcome", self._outcome(run, said))
            if said is not None and failing(said):
                _fail(span, said)

    def _outcome(self, run: Context | BatchContext, said: BaseException | None) -> str:
        """What becomes of the job, as far as known here: a user's policy may give up earlier."""
        match said:
            case None:
                return Move.COMPLETE
            case Snooze() | Suspended():
                return Move.SNOOZE
            case Again():
                return Move.AGAIN
            case asyncio.CancelledError():
                return "interrupted"
            case Discard():
                return Move.DISCARD
            case _:
                pass
        last = isinstance(run, Context) and run.attempt >= run.max_attempts
        chosen = isinstance(said, Retry) or retries(self._app.find_task(run.task).retry, said)
        return Move.DISCARD if last or not chosen else Move.RETRY


def failing(said: BaseException) -> bool:
    """Whether a run that ended so has failed: not if it is to go on later, or was stopped."""
    return not isinstance(said, Snooze | Suspended | Again | asyncio.CancelledError)


def _attributes(operation: str, task: str) -> dict[str, Any]:
    return {
        "messaging.system": "rota",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "rota.job.task": task,
    }


def _sent_as(span: Span, call: EnqueueCall, jobs: list[JobId]) -> list[JobId]:
    """Note the id of a single job."""
    if not call.many and jobs:
        span.set_attribute("messaging.message.id", str(jobs[0]))
    return jobs


def _fail(span: Span, error: BaseException) -> None:
    """Note why a span has failed; what a handler says on purpose has no traceback."""
    kind = type(error)
    name = f"{kind.__module__}.{kind.__qualname__}"
    about: dict[str, str] = {}
    if isinstance(error, RemoteError):
        name = error.exception
        about = {
            "exception.type": name,
            "exception.message": error.message,
            "exception.stacktrace": error.traceback,
        }
    span.set_attribute("error.type", name)
    span.set_status(Status(StatusCode.ERROR))
    if not isinstance(error, Outcome):
        span.record_exception(error, attributes=about)


# What travels: with a job, and on to a child process ------------------------------------------


def _sent() -> dict[str, str]:
    """The current context, as texts."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier


def _received_context(headers: Mapping[str, str]) -> TraceContext:
    """The context that texts carry, and nothing of the current one."""
    return propagate.extract(headers, context=TraceContext())


def _received(sent: Mapping[str, str], call_next: Callable[[], Any]) -> Any:
    """Run a handler in a child process within the context of its run."""
    token = contexts.attach(_received_context(sent))
    try:
        return call_next()
    finally:
        contexts.detach(token)


def _links(received: Iterable[TraceContext]) -> list[Link]:
    """A link to each enqueue, once."""
    found: dict[tuple[int, int], SpanContext] = {}
    for each in received:
        span = trace.get_current_span(each).get_span_context()
        if span.is_valid:
            found[span.trace_id, span.span_id] = span
    return [Link(span) for span in found.values()][:MOST_LINKS]
