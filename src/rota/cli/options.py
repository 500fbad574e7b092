"""Options and arguments of many commands."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from rota.errors import ConfigError
from rota.model import durations, sizes
from rota.model.job import LARGEST_ID
from rota.model.options import check_name
from rota.terminal.advice import SHARD, remember

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_LIMIT = 50
"""Rows of a list unless told otherwise."""

LOOPBACK = "127.0.0.1"
"""Where to listen unless told otherwise: other machines do not reach it."""

LAST_PORT = 65535

ID = click.IntRange(1, LARGEST_ID)
"""The id of a job or of a flow."""


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A duration such as 90s, 10m, 2h; gives seconds.

    A bare number, which could mean minutes or seconds, is refused.
    """

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read what was written."""
        if isinstance(value, float):
            return value
        what = param.opts[0] if param else "duration"
        try:
            return durations.parse(str(value), what)
        except ConfigError as error:
            self.fail(str(error).partition(": ")[2], param, ctx)


class ListenOn(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """HOST:PORT, or a PORT of this machine alone; gives an `Address`."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read what was written."""
        from rota.service.endpoint import Address

        if isinstance(value, Address):
            return value
        host, colon, port = str(value).rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        host = host[1:-1] if bracketed else host
        plain = colon and host and (bracketed or ":" not in host)
        number = int(port) if port.isascii() and port.isdigit() else LAST_PORT + 1
        if number > LAST_PORT or not (plain or not colon):
            self.fail(f"{value!r} is not HOST:PORT, such as 127.0.0.1:8081", param, ctx)
        return Address(host or LOOPBACK, number)


class Size(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """An amount of memory such as 500MB; gives bytes. A bare number is refused."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read what was written."""
        what = param.opts[0] if param else "size"
        try:
            return sizes.parse(str(value), what)
        except ConfigError as error:
            self.fail(str(error).partition(": ")[2], param, ctx)


class Name(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """The name of a queue, a task or a cron entry, as `what` says."""

    name = "name"

    def __init__(self, what: str) -> None:
        self._what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002 - click's signature
        """Refuse an impossible name."""
        return check_name(value, self._what)


def url_option(function: F) -> F:
    """`--url` and `--shard`, for commands that work on a database."""
    return _which_database(_the_one)(function)


def urls_option(function: F) -> F:
    """The same for commands that are done `each_shard`, where neither is given."""
    return _which_database(_given)(function)


def _which_database(callback: Callable[..., Any]) -> Callable[[F], F]:
    def options(function: F) -> F:
        url = click.option(
            "--url",
            metavar="URL",
            callback=callback,
            help="The database, such as postgresql:///shop or sqlite:///rota.db.  "
            "[default: ROTA_DATABASE_URL, else sqlite:///rota.db]",
        )
        shard = click.option(
            "--shard",
            metavar="NAME",
            callback=_remember_shard,
            is_eager=True,
            expose_value=False,
            help="The database of this name in ROTA_SHARDS.",
        )
        return url(shard(function))

    return options


def _remember_shard(context: click.Context, _: click.Parameter, name: str | None) -> None:
    """Keep the given `--shard`."""
    if name is not None:
        context.meta[SHARD] = name


def _given(context: click.Context, parameter: click.Parameter, url: str | None) -> str | None:
    """The URL that `--url` or `--shard` names."""
    name = context.meta.get(SHARD)
    if name is None:
        return remember(context, parameter, url)
    if url is not None:
        message = "--url and --shard both say which database; leave one of them out"
        raise click.UsageError(message)
    shards = _shards()
    if name not in shards:
        there = ", ".join(shards) or "none, since the variable is not set"
        message = f"there is no shard {name!r}; ROTA_SHARDS names {there}"
        raise click.UsageError(message)
    return shards[name]


def _the_one(context: click.Context, parameter: click.Parameter, url: str | None) -> str | None:
    """The same, where one database is needed."""
    found = _given(context, parameter, url)
    if found is None and (shards := _shards()):
        message = (
            f"ROTA_SHARDS names several databases; choose one with --shard: {', '.join(shards)}"
        )
        raise click.UsageError(message)
    return found


def _shards() -> dict[str, str]:
    from rota.store.shard_urls import from_environment

    return from_environment()


def ids_argument(*, required: bool = True) -> Callable[[F], F]:
    """The ids of jobs or of flows."""
    return click.argument("ids", metavar="ID...", nargs=-1, required=required, type=ID)


def page_options(what: str, most: int) -> Callable[[F], F]:
    """`--limit` and `--after` for lists of jobs or flows, newest first; `most` bounds the limit."""

    def options(function: F) -> F:
        limit = click.option(
            "--limit",
            type=click.IntRange(1, most),
            default=DEFAULT_LIMIT,
            show_default=True,
            help=f"List at most this many {what}.",
        )
        after = click.option(
            "--after",
            metavar="ID",
            type=ID,
            help=f"Only {what} older than this one: the next page.",
        )
        return limit(after(function))

    return options


def say_page(what: str, ids: Sequence[int], limit: int) -> None:
    """Say how to go on, where a page of a list is full."""
    if len(ids) == limit:
        click.echo(f"({limit} {what}; more with --limit, or --after {ids[-1]})", err=True)
