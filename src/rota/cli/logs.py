"""The log of a worker: lines for people, or one JSON object per line, on stderr.

No line has args: Rota's messages leave them out.
"""

import functools
import logging
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from rota.app import running
from rota.log import FIELDS
from rota.terminal.exits import log_the_end
from rota.terminal.output import harmless, harmless_lines

if TYPE_CHECKING:
    from types import TracebackType

    ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None]

COLOURS = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "red"}


def set_up(*, verbose: bool, as_json: bool) -> None:
    """Send the log of this process, which runs a command, to stderr."""
    if as_json:
        log_the_end()
    _to_stderr(verbose=verbose, as_json=as_json)


def in_child(*, verbose: bool, as_json: bool) -> Callable[[], None]:
    """What does the same in a child process of the worker."""
    return functools.partial(_to_stderr, verbose=verbose, as_json=as_json)


def _to_stderr(*, verbose: bool, as_json: bool) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else Lines(colours=sys.stderr.isatty()))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    if as_json:
        # What would go to stderr as it is: there shall be nothing but JSON.
        logging.captureWarnings(capture=True)
        sys.excepthook = lambda *error: _uncaught(error)
        threading.excepthook = lambda args: _uncaught(
            (args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
        )
    logging.getLogger("rota").setLevel(logging.DEBUG if verbose else logging.INFO)


def _uncaught(error: "ExceptionInfo") -> None:
    if not issubclass(error[0], SystemExit):
        logging.getLogger("rota").critical("an exception that was not caught", exc_info=error)


class Lines(logging.Formatter):
    """Time, level, message."""

    def __init__(self, *, colours: bool) -> None:
        super().__init__()
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """One line, and a traceback if there is one."""
        at = datetime.fromtimestamp(record.created, UTC).astimezone()
        line = f"{at:%Y-%m-%d %H:%M:%S} {record.levelname:<7} {harmless(record.getMessage())}"
        if record.exc_info:
            line += "\n" + harmless_lines(self.formatException(record.exc_info))
        colour = COLOURS.get(record.levelno)
        return click.style(line, fg=colour) if self._colours and colour else line


class JsonLines(logging.Formatter):
    """One JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's fields."""
        fields: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage().encode("utf-8", "backslashreplace").decode(),
        }
        fields |= running.fields()
        fields |= {name: vars(record)[name] for name in FIELDS if name in vars(record)}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields).decode()
