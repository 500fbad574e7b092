"""Tasks for child processes, of an instrumented app.

A child imports this module, whatever app the worker has.
"""

import os

import sentry_sdk
from opentelemetry import baggage, trace

from rota import Rota, otel, sentry
from rota.app.running import fields

rota = Rota("sqlite:///nobody-opens-this.db")
otel.instrument(rota)
sentry.instrument(rota)


@rota.task(executor="process", store_result=True)
def trace_of_child() -> dict[str, str]:
    """The current span, the baggage, and what a line of log would say of it."""
    span = trace.get_current_span().get_span_context()
    return {
        "trace": trace.format_trace_id(span.trace_id),
        "span": trace.format_span_id(span.span_id),
        "tenant": str(baggage.get_baggage("tenant")),
        "pid": str(os.getpid()),
        "logged": str(fields().get("trace_id")),
        "job": str(fields().get("job")),
    }


@rota.task(executor="process", store_result=True)
def sentry_of_child() -> str | None:
    """The trace that Sentry would tell of here."""
    return sentry_sdk.get_traceparent()


@rota.task(executor="process", max_attempts=1)
def fail_in_child() -> None:
    """Raise what has a message."""
    message = "the ship has sunk"
    raise ValueError(message)
