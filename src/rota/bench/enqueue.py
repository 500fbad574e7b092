"""What does an enqueue cost, next to a bare INSERT through the same driver in the same run?"""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from statistics import median
from typing import Any

from rota.bench import tasks
from rota.bench.report import percentiles

BLOCK = 50
"""Enqueues and bare INSERTs take turns in blocks of so many, so that both meet the same machine."""


def enqueue(
    url: str, jobs: int, *, singles: int, progress: Callable[[int], None]
) -> dict[str, Any]:
    """Time `singles` enqueues one by one against as many bare INSERTs, then one of `jobs` jobs."""
    app, noop = tasks.make(url)
    insert, close = _bare(url)
    # The first ones open connections and prepare statements.
    for n in range(BLOCK):
        noop.enqueue(n)
        insert(n)
    ours: list[float] = []
    bare: list[float] = []
    for start in range(0, singles, BLOCK):
        for call, times in ((noop.enqueue, ours), (insert, bare)):
            for n in range(start, min(start + BLOCK, singles)):
                began = time.perf_counter()
                call(n)
                times.append(time.perf_counter() - began)
        progress(start)
    close()
    many = [(n,) for n in range(jobs)]
    noop.enqueue_many(many[:1000])
    began = time.perf_counter()
    noop.enqueue_many(many)
    seconds = time.perf_counter() - began
    progress(singles + jobs)
    app.close()
    return {
        "one_by_one": {
            "jobs": singles,
            "rate": round(singles / sum(ours)),
            "bare_insert_rate": round(singles / sum(bare)),
            "ratio_to_bare_insert": round(sum(bare) / sum(ours), 3),
            "ratio_of_medians": round(median(bare) / median(ours), 3),
            **percentiles(ours),
        },
        "enqueue_many": {
            "jobs": jobs,
            "seconds": round(seconds, 3),
            "rate": round(jobs / seconds),
        },
    }


def _bare(url: str) -> tuple[Callable[[int], object], Callable[[], object]]:
    """A function that inserts one row as plainly as the driver can, and one that ends it."""
    columns = "(id {} PRIMARY KEY, task text NOT NULL, args {} NOT NULL)"
    if url.startswith("sqlite"):
        path = url.partition("///")[2]
        with closing(sqlite3.connect(path)) as there:
            there.execute("CREATE TABLE bare" + columns.format("integer", "text"))
        file = sqlite3.connect(path, isolation_level=None)
        file.execute("PRAGMA synchronous = FULL")
        sql = "INSERT INTO bare (task, args) VALUES (?, ?)"
        return lambda n: file.execute(sql, ("bench.noop", f'{{"n":{n}}}')), file.close
    import psycopg

    server = psycopg.connect(url, autocommit=True)
    server.execute("CREATE TABLE bare" + columns.format("bigserial", "json"))
    statement = "INSERT INTO bare (task, args) VALUES (%s, %s::json) RETURNING id"
    return (
        lambda n: server.execute(statement, ("bench.noop", f'{{"n":{n}}}')).fetchone(),
        server.close,
    )
