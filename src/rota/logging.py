"""Which job a line of log comes from: for handlers of `logging`, and for structlog."""

import logging
from collections.abc import MutableMapping
from typing import Any

from rota.app.app import Rota
from rota.app.running import fields, name_runs

NAMES = ("job", "task", "queue", "attempt", "trace_id")
"""The fields."""


class JobFields(logging.Filter):
    """Gives what is logged while a handler runs the fields `job`, `task`, `queue`, `attempt` and `trace_id`.

    It is a filter, for `handler.addFilter(…)`, and a processor of structlog's. A record of `logging` always has all five, with
    `None` where there is nothing to say; structlog's have those that are known. `trace_id` is OpenTelemetry's, if the program
    uses that. A line of a batch has the task alone.

    Args:
        app: Whose handlers.
    """

    def __init__(self, app: Rota) -> None:
        super().__init__()
        name_runs(app)

    def filter(self, record: logging.LogRecord) -> bool:
        """Add them to a record; what it has already stays."""
        known = dict.fromkeys(NAMES) | fields()
        for name, value in known.items():
            if name not in vars(record):
                setattr(record, name, value)
        return True

    def __call__(
        self, logger: object, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Add them to an event of structlog's; what it has already stays."""
        del logger, method
        for name, value in fields().items():
            event.setdefault(name, value)
        return event
