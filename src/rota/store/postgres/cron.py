"""Cron on PostgreSQL: entries that are locked, and marks that are appended."""

from datetime import UTC, datetime

from rota.store.cron import Cron, Dialect, Enqueue, EnqueueKeyed
from rota.store.postgres.connection import LockTimeout
from rota.store.postgres.statements import sql


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


DIALECT = Dialect(
    entries=sql("cron_entries"),
    lock=sql("cron_lock"),
    take=sql("cron_take"),
    mark=sql("cron_mark"),
    add=sql("cron_add"),
    change=sql("cron_change"),
    hold=sql("cron_hold"),
    declared=sql("cron_declared"),
    pause=sql("cron_pause"),
    remove=sql("cron_remove"),
    worker=sql("cron_worker"),
    forget=None,
    attempt=(sql("cron_attempt"), sql("cron_wait")),
    stored=sql("lock_wait"),
    give_up=sql("cron_give_up"),
    taken=LockTimeout,
    write=_utc,
    read=_utc,
    many=list,
)


def cron(enqueue: Enqueue, enqueue_keyed: EnqueueKeyed) -> Cron:
    """The operations on entries."""
    return Cron(DIALECT, enqueue, enqueue_keyed)
