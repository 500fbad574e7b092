"""Which open transactions `rota supervise` may end.

The idea is article 1 of docs/engine.md: something that keeps an eye on transactions and ends those
that have been alive for too long. A rule names whose; without one everybody would be meant, a
pg_dump and a schema change too.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from rota.store.health import OpenTransaction, PreparedTransaction


@dataclass(frozen=True, slots=True)
class Rules:
    """Whose transactions are meant: one of the users, and one of the applications, and so on.

    Args:
        older_than: Seconds a transaction may be open.
        users: Database roles; empty for all.
        applications: Application names; empty for all.
        databases: Databases; empty for all.
        idle_only: Only sessions that do nothing in their transaction just now.
    """

    older_than: float
    users: frozenset[str] = frozenset()
    applications: frozenset[str] = frozenset()
    databases: frozenset[str] = frozenset()
    idle_only: bool = False

    @property
    def selective(self) -> bool:
        """Whether they name anybody."""
        return bool(self.users or self.applications or self.databases)


def chosen(
    transactions: Iterable[OpenTransaction], rules: Rules, spared: Container[str]
) -> list[OpenTransaction]:
    """The transactions that the rules mean; never those of a spared application."""
    return [
        one
        for one in transactions
        if one.seconds >= rules.older_than
        and one.application not in spared
        and _named(one.user, rules.users)
        and _named(one.application, rules.applications)
        and _named(one.database, rules.databases)
        and (not rules.idle_only or one.state.startswith("idle in transaction"))
    ]


def reported(
    transactions: Iterable[PreparedTransaction], rules: Rules
) -> list[PreparedTransaction]:
    """The prepared transactions to tell of; they have no application, and are never ended."""
    return [
        one
        for one in transactions
        if one.seconds >= rules.older_than
        and _named(one.user, rules.users)
        and _named(one.database, rules.databases)
    ]


def _named(name: str, names: frozenset[str]) -> bool:
    return not names or name in names
