"""What the database says when all is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rota import Rota, StoreError
from rota.store.postgres import clearing, rings
from tests.store.postgres.counting import DIFFERENCE
from tests.store.postgres.database import Database

EMPTY = ("lease", "timer", "unique_key", "session", "lot")
"""Tables without rows where nothing is to be done, and there is no worker."""

SIZES = """
    SELECT relname, pg_total_relation_size(oid) FROM pg_class
    WHERE relnamespace = 'rota'::regnamespace AND relkind = 'r'"""


@dataclass
class Facts:
    """What the database says when all is done.

    Attributes:
        effects: How often the effect of each job was stored.
        discarded: The tasks of discarded jobs.
        left: How many jobs are not finished, by queue and state.
        miscounted: Counters that differ from counting: which of the two, queue, state and jobs.
        rows: Of tables that are empty where nothing is to be done.
        sizes: Bytes of each table.
    """

    effects: Mapping[int, int] = field(default_factory=dict)
    discarded: Sequence[str] = ()
    left: Mapping[str, int] = field(default_factory=dict)
    miscounted: Sequence[tuple[Any, ...]] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def gathered(url: str) -> Facts:
    """Look at the database, when there is no worker any more."""
    with Rota(url) as app, Database(url) as db:
        left = left_over(app)
        _tidy(db)
        discarded = "SELECT task FROM rota.job WHERE state = 'discarded'"
        return Facts(
            effects=dict(db.sql("SELECT number, count(*) FROM effect GROUP BY number")),
            discarded=[row[0] for row in db.sql(discarded)],
            left=left,
            miscounted=db.sql(DIFFERENCE),
            rows={table: db.one(f"SELECT count(*) FROM rota.{table}") for table in EMPTY},
            sizes=dict(db.sql(SIZES)),
        )


def left_over(app: Rota) -> dict[str, int]:
    """How many jobs are not finished, by queue and state."""
    try:
        queues = app.database.run(app.database.store.queues())
    except StoreError as error:
        return {str(error): 1}
    return {
        f"{queue.name} {state}": jobs
        for queue in queues
        for state, jobs in queue.counts.items()
        if jobs and not state.finished
    }


def _tidy(db: Database) -> None:
    """Turn all rings, without rest, and give back what can be given back."""
    sizes = {name: getattr(rings, name) for name in vars(rings) if name.endswith("_SIZE")}
    rest = clearing.REST
    try:
        for name in sizes.keys() - {"COPY_FORWARD_SIZE"}:
            setattr(rings, name, 0)
        clearing.REST = 0.0
        for _ in range(8):
            db.own.run(db.store.squeeze())
            db.own.run(db.store.tidy())
    finally:
        clearing.REST = rest
        for name, size in sizes.items():
            setattr(rings, name, size)
    db.sql("VACUUM")
