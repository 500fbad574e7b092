"""Cron on SQLite: one row per entry, which says how far it has come. One writer at a time."""

from datetime import UTC, datetime

from rota.store.cron import Cron, Dialect, Enqueue
from rota.store.sqlite.enqueue_keyed import KeyTaken
from rota.store.sqlite.statements import json_list, sql


def _read(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)


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
    forget=sql("cron/cron_forget"),
    # An entry has one key: where that is not to be had, nothing was begun.
    attempt=(),
    stored=None,
    give_up=None,
    taken=KeyTaken,
    write=datetime.timestamp,
    read=_read,
    many=json_list,
)


def cron(enqueue: Enqueue) -> Cron:
    """The operations on entries."""
    return Cron(DIALECT, enqueue)
