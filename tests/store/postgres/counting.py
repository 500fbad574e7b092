"""The counters against COUNT(*), for the tests of counting."""

from rota.model.job import QueueRecord
from rota.store.postgres import jobs as lookup
from tests.store.postgres.database import Database

# One statement, hence one snapshot: also beside all other work.
DIFFERENCE = f"""
WITH told AS (
    SELECT name, CASE WHEN state IN ('appended', 'claimed', 'removed') THEN 'available'
                      ELSE state END AS state,
           sum(CASE WHEN state IN ('claimed', 'removed') THEN -jobs ELSE jobs END) AS jobs
    FROM ({lookup.QUEUES.text}) AS counted WHERE state IS NOT NULL
    GROUP BY 1, 2
), found AS (
    SELECT queue, state, count(*) AS jobs FROM rota.job GROUP BY queue, state
)
(SELECT 'told', * FROM told WHERE jobs <> 0 EXCEPT SELECT 'told', * FROM found)
UNION ALL
(SELECT 'found', * FROM found EXCEPT SELECT 'found', * FROM told)
"""


def right(db: Database) -> bool:
    """Whether the counters say what counting says."""
    return db.sql(DIFFERENCE) == []


def squeeze(db: Database) -> bool:
    """Write the totals down."""
    return db.own.run(db.store.squeeze())


def tidy(db: Database, rounds: int = 3) -> None:
    """Turn the rings."""
    for _ in range(rounds):
        db.own.run(db.store.tidy())


def queue(db: Database) -> QueueRecord:
    """What is told of the only queue."""
    [found] = db.own.run(db.store.queues())
    return found


def marks(db: Database) -> int:
    """The number of the newest mark."""
    return int(db.one("SELECT max(seq) FROM rota.tally_mark"))
