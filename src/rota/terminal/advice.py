"""Commands that a command advises: they name the same database.

A `--url` or `--shard` that was given to this command is added to them. A URL from the environment,
or the default, they find by themselves.
"""

import re
from shlex import quote

import click

from rota.store.url import shown

GIVEN = "rota.url"
"""The key of the given `--url` in click's context."""

SHARD = "rota.shard"
"""The key of the given `--shard`, or of the one that a command is at just now."""


def remember(context: click.Context, parameter: click.Parameter, url: str | None) -> str | None:
    """Keep the given `--url`; for click's `callback`."""
    context.meta[GIVEN] = url
    return not_empty(context, parameter, url)


def not_empty(_: click.Context, __: click.Parameter, url: str | None) -> str | None:
    """Refuse an empty `--url`, as from a shell variable that is not set; for `callback`."""
    if url is not None and not url.strip():
        message = "it is empty; name a database, or leave out the option"
        raise click.BadParameter(message)
    return url


def addressed(command: str) -> str:
    """A command of Rota's with the given `--url`; other commands stay as they are."""
    context = click.get_current_context(silent=True)
    url = context.meta.get(GIVEN) if context else None
    shard = context.meta.get(SHARD) if context else None
    if not command.startswith("rota ") or " --url " in command:
        return command
    if shard:
        return f"{command} --shard {shard}"
    if not url:
        return command
    return f"{command} --url {quote(shown(url))}"


def addressed_within(message: str) -> str:
    """A message whose commands, between backticks, name the database."""
    return re.sub(r"`([^`]+)`", lambda found: f"`{addressed(found[1])}`", message)
