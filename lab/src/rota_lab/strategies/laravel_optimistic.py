"""Optimistic locking instead of locks that are held: article 5's proposal, a package for Laravel.

Reproduced: the table of `laravel` with a `version`; the claim without a transaction (a select
without locks, then an update that asks for the version that was read); a worker that updated no row
was preempted and selects again; the optimization that selects as many jobs as there are workers and
picks one of them at random; the delete as a single statement.

Filled in from the source of the article's benchmark: the table's index on `queue`, and that all of
a window are picked with the same chance.
`retry_after` is as in `laravel`. What fails is left to expire.

"No DB lock so no deadlocks" holds for what the article means: an update locks one row and no
entry of an index, as it changes no indexed column, so a delete never waits in a circle. Locks
there are: a preempted worker has waited for the row until the other's update was committed.
"The collision of all workers on one job is highly improbable, N to the power of -N": it is that
for one certain job; for any of the N jobs it is N times as much, and two workers that collide,
which is enough for one to be preempted, are common.
"""

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, LiteralString

from rota_lab.databases import Database
from rota_lab.shift import Shift
from rota_lab.strategy import Job, Strategy

QUEUE = "default"

TABLES: Mapping[Database, LiteralString] = {
    Database.MARIADB: """
        create table jobs (
            id bigint(20) unsigned not null auto_increment,
            queue varchar(255) collate utf8mb4_unicode_ci not null,
            payload longtext collate utf8mb4_unicode_ci not null,
            attempts tinyint(3) unsigned not null,
            reserved_at int(10) unsigned default null,
            available_at int(10) unsigned not null,
            created_at int(10) unsigned not null,
            version int(10) unsigned not null default 0,
            primary key (id)
        ) engine=InnoDB auto_increment=1 default charset=utf8mb4 collate=utf8mb4_unicode_ci
    """,
    Database.POSTGRES: """
        create table jobs (
            id bigserial primary key,
            queue varchar(255) not null,
            payload text not null,
            attempts smallint not null,
            reserved_at integer,
            available_at integer not null,
            created_at integer not null,
            version integer not null default 0
        )
    """,
    Database.SQLITE: """
        create table jobs (
            id integer primary key autoincrement not null,
            queue varchar not null,
            payload text not null,
            attempts integer not null,
            reserved_at integer,
            available_at integer not null,
            created_at integer not null,
            version integer not null default 0
        )
    """,
}


class LaravelOptimistic(Strategy):
    """Nothing is locked between reading and claiming; a worker that is late sees it by the version.

    Attributes:
        preempted: How often another worker has claimed what was picked here.
    """

    name = "laravel-optimistic"
    summary = (
        "Selects as many jobs as there are workers, picks one at random, and claims it if its"
        " version is still the same. Workers seldom meet, and the order is lost a little."
    )
    articles = (5,)
    databases = (Database.POSTGRES, Database.MARIADB, Database.SQLITE)
    patient = True
    # A window of 0 is as wide as there are workers.
    defaults = {"retry_after": 4, "window": 0}

    chance: ClassVar[random.Random] = random.Random()  # noqa: S311 - nothing is secret here
    preempted = 0

    def make(self) -> None:
        self.db.execute(TABLES[self.location.database])
        self.db.execute("create index jobs_queue_index on jobs (queue)")

    def enqueue(self, jobs: Sequence[Job]) -> None:
        now = int(time.time())
        self.db.execute_many(
            "insert into jobs (queue, payload, attempts, reserved_at, available_at, created_at)"
            " values (%s, %s, 0, null, %s, %s)",
            [(QUEUE, job.text, now, now) for job in jobs],
        )

    def left(self) -> int:
        return int(self.db.rows("select count(*) from jobs")[0][0])

    def step(self, shift: Shift) -> bool:
        with shift.claiming():
            job = self._pop()
        if job is None:
            return False
        shift.work(job.payload)
        self.db.execute("delete from jobs where id = %s", job.id)
        return True

    def _pop(self) -> Any | None:
        window = int(self.settings["window"] or self.settings["workers"])
        while True:
            now = int(time.time())
            jobs = self.db.rows(
                "select * from jobs where queue = %s"
                " and ((reserved_at is null and available_at <= %s) or (reserved_at <= %s))"
                " order by id asc limit %s",
                QUEUE, now, now - int(self.settings["retry_after"]), window,
            )  # fmt: skip
            if not jobs:
                return None
            job = self.chance.choice(jobs)
            if self.db.execute(
                "update jobs set reserved_at = %s, attempts = attempts + 1, version = version + 1"
                " where id = %s and version = %s",
                now, job.id, job.version,
            ):  # fmt: skip
                return job
            self.preempted += 1


class LaravelOptimisticFirst(LaravelOptimistic):
    """Without the optimization; "DBO-0" in the article's tables."""

    name = "laravel-optimistic-first"
    summary = (
        "The queue of laravel-optimistic with a window of one: everybody wants the first job."
        " All but one are preempted, and select again."
    )
    variant = True
    defaults = {**LaravelOptimistic.defaults, "window": 1}
