"""Where several databases are one app: on which of them something happens just now.

A worker runs handlers and tells subscribers with this set, so that log lines name the shard, and
jobs that a handler enqueues lie beside its own where nothing else is said.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import NamedTuple


class Here(NamedTuple):
    """A shard of an app."""

    app: object
    shard: str


HERE: ContextVar[Here | None] = ContextVar("rota_here", default=None)
"""Where this happens; `None` where one database is the app."""


@contextmanager
def at(here: Here) -> Iterator[None]:
    """Let the block happen there."""
    token = HERE.set(here)
    try:
        yield
    finally:
        HERE.reset(token)


def context_of(here: Here) -> Context:
    """A context in which nothing else is set."""
    context = Context()
    context.run(HERE.set, here)
    return context


class NameShard(logging.Filter):
    """Lets each line of Rota's log name the shard that it is about, if any.

    The shard is in its text, and in the field `shard`.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Name the shard; every record passes."""
        if (here := HERE.get()) is not None:
            record.shard = here.shard
            record.msg = f"shard {here.shard}: {record.msg}"
        return True


NAMING = NameShard()
"""One for all, which a logger has once however often it is added."""
