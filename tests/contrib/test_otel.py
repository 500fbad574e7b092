"""`rota.otel`: spans of enqueues and runs, and how they hang together."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from rota import Again, ConfigError, Discard, Retry, Rota, Snooze, State
from rota.app.executor import Executor
from rota.events import JobCompleted, JobsEnqueued, JobStarted
from rota.otel import MOST_LINKS, How, instrument, linked
from rota.worker import arguments, calls
from tests.contrib import traced
from tests.fixtures.workers import drained, records, until, working
from tests.worker.chores import adopt

PROVIDER = TracerProvider()
EXPORTER = InMemorySpanExporter()
PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))
TRACER = PROVIDER.get_tracer("test")


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Rota]:
    """An app that is instrumented; nothing here differs between the stores."""
    EXPORTER.clear()
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app:
        instrument(app, tracer_provider=PROVIDER)
        yield app


def spans(name: str) -> list[ReadableSpan]:
    """The spans of this name that have ended, in that order."""
    return [span for span in EXPORTER.get_finished_spans() if span.name == name]


def one(name: str) -> tuple[ReadableSpan, dict[str, Any]]:
    """The only span of this name, and its attributes."""
    [span] = spans(name)
    return span, dict(span.attributes or {})


def child_of(span: ReadableSpan, parent: ReadableSpan) -> bool:
    """Whether it is one, in the same trace."""
    assert parent.context is not None
    assert span.context is not None
    same = span.context.trace_id == parent.context.trace_id
    return same and span.parent is not None and span.parent.span_id == parent.context.span_id


def linked_to(span: ReadableSpan) -> list[int]:
    """The ids of the spans that it has links to."""
    return [link.context.span_id for link in span.links]


def test_an_enqueue(app: Rota) -> None:
    """It is a span of the producer's, within the current one, with the names of the conventions."""

    @app.task(name="send", queue="mail")
    async def send(order: int) -> None: ...

    with TRACER.start_as_current_span("request"):
        job = send.enqueue(1)
    span, attributes = one("send send")
    [request] = spans("request")
    assert child_of(span, request)
    assert span.kind is SpanKind.PRODUCER
    assert attributes == {
        "messaging.system": "rota",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "mail",
        "messaging.message.id": str(job.id),
        "rota.job.task": "send",
    }


@pytest.mark.asyncio
async def test_an_async_enqueue(app: Rota) -> None:
    """`aenqueue` has one as well, and what the caller put into the headers stays."""

    @app.task(name="send")
    async def send(order: int) -> None: ...

    await send.using(headers={"tenant": "acme"}).aenqueue(1)
    span, _ = one("send send")
    [job] = records(app)
    assert job.headers["tenant"] == "acme"
    assert span.context is not None
    assert trace.format_span_id(span.context.span_id) in job.headers["traceparent"]


def test_many_at_once(app: Rota) -> None:
    """One call is one span, with the number of jobs, and all of them have its context."""

    @app.task(name="send")
    async def send(order: int) -> None: ...

    send.enqueue_many((n,) for n in range(3))
    _, attributes = one("send send")
    assert attributes["messaging.batch.message_count"] == 3
    assert "messaging.message.id" not in attributes
    assert len({job.headers["traceparent"] for job in records(app)}) == 1


def test_a_refused_enqueue(app: Rota) -> None:
    """The caller gets the error, and the span has its name."""

    @app.task(name="send")
    async def send(order: int) -> None: ...

    with pytest.raises(Exception, match="order"):
        send.enqueue("x")  # type: ignore[arg-type]
    span, attributes = one("send send")
    assert attributes["error.type"] == "rota.errors.ArgsError"
    assert span.status.status_code is StatusCode.ERROR


@pytest.mark.parametrize("executor", [Executor.LOOP, Executor.THREAD, Executor.PROCESS])
def test_a_run(app: Rota, executor: Executor) -> None:
    """It is a consumer's span below the enqueue, and current for the handler wherever that runs."""

    async def on_loop() -> dict[str, str]:
        return traced.trace_of_child()

    def in_thread() -> dict[str, str]:
        return traced.trace_of_child()

    match executor:
        case Executor.LOOP:
            task: Any = app.task(name="look", store_result=True)(on_loop)
        case Executor.THREAD:
            task = app.task(name="look", store_result=True)(in_thread)
        case _:
            task = adopt(app, traced.trace_of_child)
    token = context.attach(baggage.set_baggage("tenant", "acme"))
    job = task.enqueue()
    context.detach(token)
    drained(app, processes=1)
    sent, _ = one(f"send {task.name}")
    span, attributes = one(f"process {task.name}")
    assert child_of(span, sent)
    assert span.kind is SpanKind.CONSUMER
    assert attributes == {
        "messaging.system": "rota",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "default",
        "messaging.message.id": str(job.id),
        "rota.job.task": task.name,
        "rota.job.attempt": 1,
        "rota.outcome": "complete",
    }
    seen = job.result()
    assert span.context is not None
    assert seen["trace"] == trace.format_trace_id(span.context.trace_id)
    assert seen["span"] == trace.format_span_id(span.context.span_id)
    assert seen["tenant"] == "acme"
    if executor is Executor.PROCESS:
        assert (seen["logged"], seen["job"]) == (seen["trace"], str(job.id))


@pytest.mark.parametrize(
    ("how", "attempt", "age", "link"),
    [
        ("auto", 1, 0.0, False), ("auto", 1, 60.0, False), ("auto", 1, 60.1, True),
        ("auto", 2, 0.0, True), ("parent", 9, 1e9, False), ("link", 1, 0.0, True),
    ],
)  # fmt: skip
def test_the_rule(how: How, attempt: int, age: float, link: bool) -> None:  # noqa: FBT001
    """With `auto` a run is a child on the first attempt within a minute; other words force it."""
    assert linked(how, attempt=attempt, age=age) is link


def test_retries_have_links(app: Rota) -> None:
    """The first attempt is a child of the enqueue, the second has a trace of its own with a link."""

    @app.task(name="try", max_attempts=2, retry=lambda _attempt, _error: 0.0)
    async def try_() -> None:
        raise ValueError

    try_.enqueue()
    drained(app)
    [sent] = spans("send try")
    first, second = spans("process try")
    assert sent.context is not None
    assert second.context is not None
    assert child_of(first, sent)
    assert linked_to(first) == []
    assert second.parent is None
    assert second.context.trace_id != sent.context.trace_id
    assert linked_to(second) == [sent.context.span_id]


@pytest.mark.parametrize(
    ("said", "outcome", "error"),
    [
        (None, "complete", None),
        (Snooze(60), "snooze", None),
        (Again(after=60), "again", None),
        (Retry("later", after=60), "retry", "rota.outcome.Retry"),
        (Discard("never"), "discard", "rota.outcome.Discard"),
        (ValueError("no"), "retry", "builtins.ValueError"),
        (KeyError("no"), "discard", "builtins.KeyError"),
    ],
    ids=str,
)
@pytest.mark.parametrize("raised", [True, False])
def test_outcomes(
    app: Rota, said: Exception | None, outcome: str, error: str | None, *, raised: bool
) -> None:
    """A retry and a discard have the name of the error; what goes on as it should has none."""

    @app.task(name="say", max_attempts=2, discard_on=KeyError, retry=lambda *_: 3600.0)
    async def say() -> Any:
        if said is not None and (raised or isinstance(said, ValueError | KeyError)):
            raise said
        return said

    say.enqueue()
    with working(app):
        until(lambda: spans("process say"), "the run")
    span, attributes = one("process say")
    assert attributes["rota.outcome"] == outcome
    assert attributes.get("error.type") == error
    assert (span.status.status_code is StatusCode.ERROR) is (error is not None)
    assert [event.name for event in span.events] == (
        ["exception"] if isinstance(said, ValueError | KeyError) else []
    )


def test_the_last_attempt(app: Rota) -> None:
    """It discards the job."""

    @app.task(name="say", max_attempts=1)
    async def say() -> None:
        raise ValueError

    say.enqueue()
    drained(app)
    assert one("process say")[1]["rota.outcome"] == "discard"


def test_an_exception_of_a_child_process(app: Rota) -> None:
    """It has its own name and traceback, as if it had been raised here."""
    adopt(app, traced.fail_in_child, max_attempts=1).enqueue()
    drained(app, processes=1)
    span, attributes = one(f"process {traced.fail_in_child.name}")
    assert attributes["error.type"] == "builtins.ValueError"
    [event] = span.events
    told = dict(event.attributes or {})
    assert told["exception.type"] == "builtins.ValueError"
    assert told["exception.message"] == "the ship has sunk"
    assert "fail_in_child" in str(told["exception.stacktrace"])


def test_a_run_that_is_stopped(app: Rota) -> None:
    """It ends with its worker, and has failed in nothing."""
    running = asyncio.Event()

    @app.task(name="wait")
    async def wait() -> None:
        running.set()
        await asyncio.Event().wait()

    wait.enqueue()
    with working(app, grace=0.0):
        until(running.is_set, "the run")
    _, attributes = one("process wait")
    assert attributes["rota.outcome"] == "interrupted"
    assert "error.type" not in attributes


def test_a_batch(app: Rota) -> None:
    """One call is one span in a trace of its own, with a link to each enqueue."""

    @app.task(name="store", batch=10, within=0.05)
    async def store(numbers: list[int]) -> None: ...

    store.enqueue(1)
    store.enqueue_many((n,) for n in range(2))
    drained(app)
    span, attributes = one("process store")
    sent = spans("send store")
    assert span.parent is None
    assert set(linked_to(span)) == {each.context.span_id for each in sent if each.context}
    assert attributes["messaging.batch.message_count"] == 3
    assert attributes["rota.outcome"] == "complete"


def test_the_links_of_a_batch_are_bounded(tmp_path: Path) -> None:
    """A call for more enqueues has links to the first 128, even if the SDK would keep more."""
    EXPORTER.clear()
    generous = TracerProvider(span_limits=SpanLimits(max_links=1000))
    generous.add_span_processor(SimpleSpanProcessor(EXPORTER))
    app = Rota(f"sqlite:///{tmp_path}/rota.db")
    instrument(app, tracer_provider=generous)

    @app.task(name="store", batch=200, within=5.0)
    async def store(numbers: list[int]) -> None: ...

    for number in range(200):
        store.enqueue(number)
    drained(app)
    span, attributes = one("process store")
    assert attributes["messaging.batch.message_count"] == 200
    assert len(span.links) == MOST_LINKS
    app.close()


def test_nothing_else_has_a_span(app: Rota) -> None:
    """A worker makes a span for each run and nothing else: none is of a loop, and all of them end."""

    @app.task(name="send")
    async def send(order: int) -> None: ...

    send.enqueue_many((n,) for n in range(20))
    drained(app)
    assert sorted({span.name for span in EXPORTER.get_finished_spans()}) == [
        "process send",
        "send send",
    ]
    assert len(spans("process send")) == 20


def test_jobs_of_before(tmp_path: Path) -> None:
    """A job that was enqueued without a trace begins one."""
    EXPORTER.clear()
    url = f"sqlite:///{tmp_path}/rota.db"
    with Rota(url) as before, Rota(url) as app:
        before.task(name="send")(print).enqueue()
        app.task(name="send")(lambda: None)
        instrument(app, tracer_provider=PROVIDER, link="link")
        drained(app)
    span, _ = one("process send")
    assert (span.parent, linked_to(span)) == (None, [])


def test_a_large_trace_keeps_no_job_from_being_stored(app: Rota) -> None:
    """Baggage that does not fit beside the caller's own headers is left out, and the trace is not."""

    @app.task(name="send")
    async def send(order: int) -> None: ...

    token = context.attach(baggage.set_baggage("much", "x" * 4000))
    send.using(headers={"tenant": "a" * 200}).enqueue(1)
    context.detach(token)
    [job] = records(app, State.AVAILABLE)
    assert set(job.headers) == {"tenant", "traceparent"}


def test_the_middleware_of_users_is_not_gone_round(app: Rota) -> None:
    """A check that guards `enqueue` alone still makes `aenqueue` refuse."""

    @app.around_enqueue
    def guard(call: Any, call_next: Any) -> Any:
        return call_next(call)

    @app.task(name="send")
    async def send(order: int) -> None: ...

    send.enqueue(1)
    with pytest.raises(ConfigError, match="guard"):
        asyncio.run(send.aenqueue(1))


def test_the_context_of_a_job_stays_its_own(app: Rota) -> None:
    """Jobs see the spans of their own runs, and nothing is current between them."""
    seen: list[int] = []

    @app.task(name="look")
    async def look() -> None:
        seen.append(trace.get_current_span().get_span_context().span_id)

    look.enqueue()
    look.enqueue()
    drained(app, concurrency=1)
    assert seen == [span.context.span_id for span in spans("process look") if span.context]
    assert len(set(seen)) == 2


def test_what_is_off_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without instruments nothing is called around a run, no event made and no header stored."""

    def unexpected(*_: object) -> None:
        message = "something is around a run"
        raise AssertionError(message)

    monkeypatch.setattr(calls, "wrapped", unexpected)
    monkeypatch.setattr(arguments, "Context", unexpected)
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app:

        @app.task(name="send")
        async def send(order: int) -> None: ...

        around = app.middleware
        assert [around.enqueueing, around.running, around.running_in_threads] == [[], [], []]
        assert not around.crossings
        for kind in (JobsEnqueued, JobStarted, JobCompleted):
            assert not app.events.wanted(kind)
        job = send.enqueue(1)
        assert records(app)[0].headers == {}
        drained(app)
        assert job.record().state is State.COMPLETED


def test_what_is_refused(app: Rota) -> None:
    """Another word, and the same app a second time."""
    with pytest.raises(ConfigError, match="already"):
        instrument(app)
    with pytest.raises(ConfigError, match="link"):
        instrument(Rota("sqlite:///never-opened.db"), link="often")  # type: ignore[arg-type]
