"""Cron on PostgreSQL: entries that are locked, and marks that are appended."""

from datetime import UTC, datetime

from rota.store.cron import Cron, Dialect, Enqueue
from rota.store.postgres.failures import LockTimeout
from rota.store.postgres.statements import sql


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


DIALECT = Dialect(
    entries=sql("cron/cron_entries"),
    lock=sql("cron/cron_lock"),
    take=sql("cron/cron_take"),
    mark=sql("cron/cron_mark"),
    add=sql("cron/cron_add"),
    change=sql("cron/cron_change"),
    hold=sql("cron/cron_hold"),
    declared=sql("cron/cron_declared"),
    pause=sql("cron/cron_pause"),
    remove=sql("cron/cron_remove"),
    worker=sql("cron/cron_worker"),
    forget=None,
    attempt=(sql("cron/cron_attempt"), sql("cron/cron_wait")),
    stored=sql("tidy/lock_wait"),
    give_up=sql("cron/cron_give_up"),
    taken=LockTimeout,
    write=_utc,
    read=_utc,
    many=list,
)


def cron(enqueue: Enqueue) -> Cron:
    """The operations on entries."""
    return Cron(DIALECT, enqueue)
