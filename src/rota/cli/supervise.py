"""`rota supervise`: end transactions that have been open for too long."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from rota.cli.options import Duration, url_option
from rota.terminal.output import harmless, json_option

if TYPE_CHECKING:
    from rota.doctor.supervise import Rules
    from rota.store.connections import Connection
    from rota.store.supervision import (
        OpenTransaction,
        PreparedTransaction,
        Supervision,
        TransactionFacts,
    )

QUERY = 200
"""Characters of a query that `--show-query` shows."""


@click.command()
@click.option(
    "--older-than", type=Duration(), default="10m", show_default=True, metavar="DURATION",
    help="How long a transaction may be open: 90s, 10m, 2h.",
)  # fmt: skip
@click.option(
    "--user",
    "users",
    metavar="NAME",
    multiple=True,
    help="Only transactions of this role; repeatable.",
)
@click.option(
    "--application", "applications", metavar="NAME", multiple=True,
    help="Only transactions with this application_name; repeatable.",
)  # fmt: skip
@click.option(
    "--database",
    "databases",
    metavar="NAME",
    multiple=True,
    help="Only transactions in this database; repeatable.",
)
@click.option("--idle-only", is_flag=True, help="Only sessions that are idle in a transaction.")
@click.option(
    "--every", type=Duration(), default="30s", show_default=True, metavar="DURATION",
    help="How often to look.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Look once, then stop.")
@click.option("--end", is_flag=True, help="End them. Without --end, only name them.")
@click.option(
    "--show-query", is_flag=True,
    help=f"Also show the first {QUERY} characters of the query; it may hold personal data.",
)  # fmt: skip
@url_option
@json_option
def supervise(
    *,
    older_than: float,
    users: tuple[str, ...],
    applications: tuple[str, ...],
    databases: tuple[str, ...],
    idle_only: bool,
    every: float,
    once: bool,
    end: bool,
    show_query: bool,
    url: str | None,
    as_json: bool,
) -> None:
    """End transactions on a PostgreSQL server that have been open for too long.

    A dry run unless --end is given; --end needs at least one of --user, --application and
    --database. Several names of one option are alternatives; several options must all fit. Never
    ended: Rota's own sessions, standbys, autovacuum, and this command itself. Prepared
    transactions are only reported. One line each; --json gives JSON lines. SIGTERM or Ctrl-C stop
    it, with exit status 0.

    With --once, the exit status is 1 if a transaction could not be ended, or if --end could not
    see the sessions of other roles.

    \b
    Examples:
      rota supervise --older-than 10m --once
      rota supervise --older-than 10m --user report --idle-only --end
    """
    from rota.cli.database import connected
    from rota.doctor.supervise import Rules
    from rota.errors import ConfigError
    from rota.terminal.exits import FAILED, USAGE, Failure

    if not all((*users, *applications, *databases)):
        raise Failure("--user, --application, --database: a name cannot be empty", USAGE)
    rules = Rules(
        older_than, frozenset(users), frozenset(applications), frozenset(databases), idle_only
    )
    if end and not rules.selective:
        message = (
            "--end needs --user, --application or --database: without one of them it would end "
            "all transactions, even those of backups and schema changes"
        )
        raise Failure(message, USAGE)
    if every < 1:
        raise Failure("--every: must be at least 1s", USAGE)
    with connected(url) as (store, connection):
        if (supervision := store.supervision) is None:
            message = "there is nothing to supervise on SQLite: its processes have no sessions"
            raise ConfigError(message)
        with _stopping() as stop:
            tell = _teller(as_json, show_query)
            watch = _Watch(supervision, connection, rules, stop, end=end, tell=tell)
            watch.look()
            while not once and not stop.wait(every):
                watch.look_again()
    if once and watch.refused:
        click.get_current_context().exit(FAILED)


class _Watch:
    """Looks for the transactions that the rules mean, and ends or names them."""

    def __init__(
        self,
        supervision: "Supervision",
        connection: "Connection",
        rules: "Rules",
        stop: threading.Event,
        *,
        end: bool,
        tell: "Callable[..., None]",
    ) -> None:
        self._supervision = supervision
        self._connection = connection
        self._rules = rules
        self._stop = stop
        self._end = end
        self._tell = tell
        self._told: set[object] = set()
        self.refused = False

    def look_again(self) -> None:
        """`look`, but report a server that is away and go on."""
        from rota.errors import StoreUnavailable

        try:
            self.look()
        except StoreUnavailable as error:
            self._tell("away", reason=str(error))

    def look(self) -> None:
        """One round."""
        from rota.doctor.supervise import chosen, reported

        seen = self._connection.run(self._supervision.open_transactions(self._rules.older_than))

        def spared(application: str) -> bool:
            return application == seen.application or self._supervision.own(application)

        self._check(seen, spared)
        if not self._end and self._first("dry run"):
            click.echo("dry run: nothing is ended without --end", err=True)
        for transaction in chosen(seen.open, self._rules, spared):
            if self._stop.is_set():
                return
            if self._end:
                self._end_transaction(transaction)
            elif self._first(transaction.pid, transaction.xact_start):
                self._tell("would end", transaction)
        for prepared in reported(seen.prepared, self._rules):
            if self._first(prepared.gid, prepared.database):
                self._tell("prepared", prepared)

    def _check(self, seen: "TransactionFacts", spared: "Callable[[str], bool]") -> None:
        from rota.terminal.exits import USAGE, Failure

        if own := sorted(filter(spared, self._rules.applications)):
            message = (
                f"--application {own[0]}: Rota's own sessions have this name and are never ended; "
                "give programs another application_name, or name them by --user"
            )
            raise Failure(message, USAGE)
        if seen.hidden and self._first("hidden"):
            self.refused = self._end
            self._tell(
                "hidden",
                reason=f"{seen.hidden} session(s) of other roles cannot be seen; "
                "GRANT pg_read_all_stats to this role (and pg_signal_backend, to end them)",
            )

    def _end_transaction(self, transaction: "OpenTransaction") -> None:
        from rota.errors import ConfigError

        try:
            ended = self._connection.run(self._supervision.end(transaction))
        except ConfigError as error:
            self.refused = True
            self._tell("refused", transaction, reason=str(error.__cause__ or error).splitlines()[0])
            return
        if ended is False:
            self.refused = True
            self._tell("still there", transaction, reason="told to end, and has not within 5 s")
        else:
            self._tell("ended" if ended else "over already", transaction)

    def _first(self, *key: object) -> bool:
        """Whether this has not been reported yet."""
        known = key in self._told
        self._told.add(key)
        return not known


def _teller(as_json: bool, show_query: bool) -> "Callable[..., None]":  # noqa: FBT001 - options
    def tell(
        action: str,
        transaction: "OpenTransaction | PreparedTransaction | None" = None,
        *,
        reason: str = "",
    ) -> None:
        fields = _fields(transaction, show_query=show_query)
        if reason:
            fields["reason"] = reason
        at = datetime.now(UTC)
        if as_json:
            document = {"at": at, "action": action.replace(" ", "_"), **fields}
            click.echo(msgspec.json.encode(document).decode())
        else:
            click.echo(harmless(f"{at.astimezone():%Y-%m-%d %H:%M:%S} {_line(action, fields)}"))

    return tell


def _fields(
    transaction: "OpenTransaction | PreparedTransaction | None", *, show_query: bool
) -> dict[str, Any]:
    from rota.doctor.schema import literal
    from rota.store.supervision import OpenTransaction, PreparedTransaction

    match transaction:
        case OpenTransaction():
            fields: dict[str, Any] = {
                "pid": transaction.pid,
                "user": transaction.user,
                "application": transaction.application,
                "database": transaction.database,
                "client": transaction.client,
                "state": transaction.state,
                "seconds": round(transaction.seconds, 3),
            }
            if show_query:
                fields["query"] = " ".join(transaction.query.split())[:QUERY]
            return fields
        case PreparedTransaction():
            return {
                "gid": transaction.gid,
                "user": transaction.user,
                "database": transaction.database,
                "seconds": round(transaction.seconds, 3),
                "advice": f"ROLLBACK PREPARED {literal(transaction.gid)};",
            }
        case None:
            return {}


def _line(action: str, fields: dict[str, Any]) -> str:
    from rota.doctor.amounts import duration

    shown = {key: value for key, value in fields.items() if value not in {"", None}}
    seconds, reason = shown.pop("seconds", None), shown.pop("reason", None)
    words = [f"{key} {value}" for key, value in shown.items()]
    if seconds is not None:
        words.append(f"open for {duration(seconds)}")
    text = ", ".join(words)
    return f"{action}: " + (f"{text}: {reason}" if text and reason else text or reason or "")


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set."""
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
