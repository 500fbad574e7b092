"""Which open transactions `rota supervise` may end.

The idea is article 1 of docs/how/engine.md: something that keeps an eye on transactions and ends
those that have been alive for too long. Rules say which: without them a pg_dump and a schema change
would be ended, too.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rota.store.supervision import OpenTransaction, PreparedTransaction


@dataclass(frozen=True, slots=True)
class Rules:
    """Which transactions are meant: of one of the users, and of one of the applications, and so on.

    Args:
        older_than: Seconds a transaction may be open.
        users: Database roles; empty for all.
        applications: Application names; empty for all.
        databases: Databases; empty for all.
        idle_only: Only sessions that are idle in their transaction.
    """

    older_than: float
    users: frozenset[str] = frozenset()
    applications: frozenset[str] = frozenset()
    databases: frozenset[str] = frozenset()
    idle_only: bool = False

    @property
    def selective(self) -> bool:
        """Whether they name a user, an application or a database."""
        return bool(self.users or self.applications or self.databases)


def chosen(
    transactions: Iterable[OpenTransaction], rules: Rules, spared: Callable[[str], bool]
) -> list[OpenTransaction]:
    """The transactions that the rules mean; never those of a spared application."""
    return [
        transaction
        for transaction in transactions
        if transaction.seconds >= rules.older_than
        and not spared(transaction.application)
        and _named(transaction.user, rules.users)
        and _named(transaction.application, rules.applications)
        and _named(transaction.database, rules.databases)
        and (not rules.idle_only or transaction.state.startswith("idle in transaction"))
    ]


def reported(
    transactions: Iterable[PreparedTransaction], rules: Rules
) -> list[PreparedTransaction]:
    """The prepared transactions to report; they have no application, and are never ended."""
    return [
        transaction
        for transaction in transactions
        if transaction.seconds >= rules.older_than
        and _named(transaction.user, rules.users)
        and _named(transaction.database, rules.databases)
    ]


def _named(name: str, names: frozenset[str]) -> bool:
    return not names or name in names
