"""A group of commands that imports only the command that is asked for.

`rota --help` imports none of them: names and summaries are in the table of the group.
"""

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click


class Lazy(NamedTuple):
    """Where a command is, and what it does in one line."""

    target: str
    summary: str


class LazyGroup(click.Group):
    """A `click.Group` over a table of `Lazy` commands."""

    def __init__(self, *args: Any, commands_by_name: Mapping[str, Lazy], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = commands_by_name

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of the commands, as the table has them."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in self._table:
            return None
        module, _, name = self._table[cmd_name].target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the help's list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in self._table.items()])
