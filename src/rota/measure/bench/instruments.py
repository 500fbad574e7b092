"""What the workers of a benchmark are instrumented by, as those of users are.

Everything is kept: each run has a span, and nothing is left out by chance. What is made goes
nowhere, so that no network is measured.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from rota.app.app import Rota
from rota.errors import ConfigError

NOTHING = "nothing"

INSTRUMENTS = (NOTHING, "prometheus", "otel", "sentry", "logging")
"""Nothing, or one of Rota's own modules."""

HEADERS: Mapping[str, Mapping[str, str]] = {
    "otel": {"traceparent": f"00-{'1' * 32}-{'2' * 16}-01"},
    "sentry": {
        "sentry-trace": f"{'1' * 32}-{'2' * 16}-1",
        "baggage": f"sentry-trace_id={'1' * 32},sentry-sample_rate=1.0,sentry-sampled=true",
    },
}
"""What the jobs bring with them from where they were enqueued."""


def instrument(app: Rota, by: str) -> None:
    """Instrument an app by one of these.

    Raises:
        ConfigError: Something is not installed.
    """
    if by == NOTHING:
        return
    try:
        # These modules are above this room: only their name is known here.
        module = import_module(f"rota.{by}")
        if by == "otel":
            module.instrument(app, tracer_provider=_provider())
        elif by == "sentry":
            _init_sentry()
            module.instrument(app)
        elif by == "logging":
            module.JobFields(app)
        else:
            module.instrument(app)
    except ImportError as error:
        message = f"--with {by}: {error.name} is not installed"
        raise ConfigError(message) from error


def _provider() -> Any:
    """OpenTelemetry's SDK, which exports to nowhere."""
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )

    class Nowhere(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            del spans
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    return provider


def _init_sentry() -> None:
    import sentry_sdk
    from sentry_sdk.envelope import Envelope
    from sentry_sdk.transport import Transport

    class Nowhere(Transport):
        def capture_envelope(self, envelope: Envelope) -> None:
            del envelope

    sentry_sdk.init("https://key@example.invalid/1", transport=Nowhere, traces_sample_rate=1.0)
