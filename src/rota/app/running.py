"""The run that a line of log comes from: its job, and the trace it is a part of."""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from rota.app.context import RUN, BatchContext, Context

if TYPE_CHECKING:
    from rota.app.app import Rota


def name_runs(app: "Rota") -> None:
    """Let `fields` know an app's runs on the loop and in threads, as it does in child processes."""
    if _remember not in app.middleware.running:
        # The outermost: what other middleware logs belongs to the job as well.
        app.middleware.running.insert(0, _remember)


def fields() -> dict[str, Any]:
    """What is known of the run in which this is called; nothing outside of runs."""
    run = RUN.get()
    if run is None:
        return {}
    # A batch is of many jobs, from several queues.
    found: dict[str, Any] = {"task": run.task}
    if isinstance(run, Context):
        found |= {"job": run.job_id, "queue": run.queue, "attempt": run.attempt}
    if (trace := _trace_id()) is not None:
        found["trace_id"] = trace
    return found


async def _remember(run: Context | BatchContext, call_next: Callable[[], Awaitable[Any]]) -> Any:
    token = RUN.set(run)
    try:
        return await call_next()
    finally:
        RUN.reset(token)


def _trace_id() -> str | None:
    """The id of the current trace, where the program uses OpenTelemetry."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    span = trace.get_current_span().get_span_context()
    return trace.format_trace_id(span.trace_id) if span.is_valid else None
