"""Cron on SQLite: one row per entry, which says how far it has come. One writer at a time."""

from datetime import UTC, datetime

from rota.store.cron import Cron, Dialect, Enqueue, EnqueueKeyed
from rota.store.sqlite.keyed import KeyTaken
from rota.store.sqlite.statements import json_list, sql


def _read(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)


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
    forget=sql("cron_forget"),
    # An entry has one key: where that is not to be had, nothing was begun.
    attempt=(),
    stored=None,
    give_up=None,
    taken=KeyTaken,
    write=datetime.timestamp,
    read=_read,
    many=json_list,
)


def cron(enqueue: Enqueue, enqueue_keyed: EnqueueKeyed) -> Cron:
    """The operations on entries."""
    return Cron(DIALECT, enqueue, enqueue_keyed)
