"""A group of commands that imports only the command that is asked for.

`rota --help` imports none of them: names and summaries are in the table of the group. Other
distributions add commands by an entry point; the help imports these, for their summaries.
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
    """A `click.Group` over a table of `Lazy` commands, and the commands of one entry point."""

    def __init__(
        self,
        *args: Any,
        commands_by_name: Mapping[str, Lazy],
        plugins: str | None = None,
        distributions: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._table = commands_by_name
        self._plugins = plugins
        self._distributions = distributions or {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of the commands, as the table has them; added ones behind them."""
        return [*self._table, *sorted(self._added())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command.

        Raises:
            click.UsageError: Its distribution is not installed.
        """
        target = self._table[cmd_name].target if cmd_name in self._table else None
        target = target or self._added().get(cmd_name)
        if target is None:
            if distribution := self._distributions.get(cmd_name):
                message = f"{cmd_name!r} is in another distribution: pip install {distribution}"
                raise click.UsageError(message)
            return None
        module, _, name = target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help's list of commands."""
        rows = [(name, lazy.summary) for name, lazy in self._table.items()]
        for name in sorted(self._added()):
            command = self.get_command(ctx, name)
            rows.append((name, command.get_short_help_str(100) if command else ""))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _added(self) -> dict[str, str]:
        """The commands of other distributions: where each is."""
        if self._plugins is None:
            return {}
        # Where a command of Rota's own runs, nothing has to be found.
        from importlib.metadata import entry_points

        return {one.name: one.value for one in entry_points(group=self._plugins)}
