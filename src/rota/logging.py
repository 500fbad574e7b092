"""Which job a log line comes from: for handlers of `logging`, and for structlog."""

import logging
from collections.abc import MutableMapping
from typing import Any

from rota.app.app import Rota
from rota.app.running import fields, name_runs

NAMES = ("job", "task", "queue", "attempt", "trace_id")
"""The fields."""


class JobFields(logging.Filter):
    """Adds the fields `job`, `task`, `queue`, `attempt`, `trace_id` to what a handler's run logs.

    It is a filter, for `handler.addFilter(…)`, and a structlog processor. A record of `logging`
    always has all five, with `None` for those not known; an event of structlog has those that are
    known. `trace_id` is OpenTelemetry's, if the program uses that. A line of a batch has only the
    task.

    Args:
        app: The app whose handlers log.
    """

    def __init__(self, app: Rota) -> None:
        super().__init__()
        name_runs(app)

    def filter(self, record: logging.LogRecord) -> bool:
        """Add them to a record; fields that it already has stay."""
        known = dict.fromkeys(NAMES) | fields()
        for name, value in known.items():
            if name not in vars(record):
                setattr(record, name, value)
        return True

    def __call__(
        self, logger: object, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Add them to an event of structlog; fields that it already has stay."""
        del logger, method
        for name, value in fields().items():
            event.setdefault(name, value)
        return event
