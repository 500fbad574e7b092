"""The end of a command: exit codes, and one red line instead of a traceback."""

import logging
from typing import IO, Any

import click

from rota.errors import (
    ConfigError,
    DatabaseRefused,
    RotaError,
    SchemaIncomplete,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    StoreError,
)
from rota.terminal.advice import addressed_within
from rota.terminal.output import harmless

logger = logging.getLogger("rota")

FAILED = 1
USAGE = 2
UNREACHABLE = 3
SCHEMA = 4
INTERRUPTED = 130

WARNED, ALARMED = 1, 2
"""How `rota doctor` ends: 0, 1 and 2 as in Nagios' checks; 3 (`UNREACHABLE`) means unknown."""


LOGGED = "rota.logged"
"""The key of `log_the_end` in click's context."""


class Failure(click.ClickException):
    """The end of a command, with what to do about it."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(addressed_within(message))
        self.exit_code = code  # type: ignore[misc]  # click reads it from the instance
        context = click.get_current_context(silent=True)
        self._logged = context is not None and LOGGED in context.meta

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - always stderr
        """One line on stderr, red on a terminal; or one of the log."""
        if self._logged:
            logger.critical("%s", self.message)
        else:
            complain(self.message)


def log_the_end() -> None:
    """From now on the command that runs says to the log, on stderr, why it fails."""
    click.get_current_context().meta[LOGGED] = True


def complain(message: str) -> None:
    """Say on stderr what is wrong, in one line."""
    line = harmless(" ".join(message.split()))
    click.secho(f"Error: {line}", fg="red", err=True)


def exit_code(error: RotaError) -> int:
    """The exit code that an error means."""
    match error:
        case SchemaIncomplete() | SchemaMissing() | SchemaOutdated() | SchemaTooNew():
            return SCHEMA
        case StoreError() | DatabaseRefused():
            return UNREACHABLE
        case ConfigError():
            return USAGE
        case _:
            return FAILED


class Reporting(click.Group):
    """A group of commands that may raise Rota's errors."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except RotaError as error:
            raise Failure(str(error), exit_code(error)) from error
        except KeyboardInterrupt:
            raise Failure("stopped by Ctrl-C", INTERRUPTED) from None
