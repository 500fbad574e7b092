"""Laravel 5.5's database queue, which locks what it reads: article 5's pessimistic locking.

Reproduced: the table with its index on `queue`; the claim (select for update, then update) in a
transaction; the work outside of it; the delete in another transaction. A reserved job that is still
there after `retry_after` seconds is available again; that is 4, as in the article's measurement of
repeated jobs (its example is 90). Its remedies are settings, and the ones it measures are variants:

- `delete_attempts`: how often a delete is tried, 1 in Laravel 5.5, 5 as a remedy;
- `delete_mark`: a job is marked before it is deleted, and a worker that gets a marked job deletes
  it;
- `queue_index`: 0 leaves the index out;
- `select_before_delete`: 1 as in Laravel 5.5, though "the fetch part is redundant";
- `force_queue_index`: 1 has MariaDB's claims walk the index on `queue`, as the article's MySQL did.

Filled in: whole seconds come from the worker's clock, as in Laravel's code, where the article
writes NOW(). The article's limit of attempts is not in its statements, and is left out. Where work
fails, its article leaves the job to expire. SQLite has no "for update", and Laravel sends none;
here a transaction is a writer's from its beginning, because otherwise one of two would fail.

Where the deadlock is, on MariaDB: a claim walks the index and locks each entry of it, then its
row, also those of reserved jobs that it does not take, and keeps them until it commits. A delete
locks its row, then the entry. The third transaction of which the article speaks is not needed; a
select before the delete makes it likelier, as it keeps the row locked for a round trip. The victim
is the transaction with fewer locks and changes. "MySQL usually picks the delete" holds for claims
that have met other reserved jobs before; a claim that meets the delete first of all is the victim
itself, as in the article's own listing, and nothing comes of that.

What does not hold: that the deadlock comes by itself. Whether MariaDB 10.11 has a claim walk the
index or the primary key, where nothing crosses, depends on its statistics: with 500 jobs it was
often the primary key, with few left the index. One run each, with 8 workers in threads: 500 jobs
were worked 501 times, with 5 deadlocks; with the index forced, 829 times, with 362. And five
attempts are a good chance, no promise: with 8 processes and the index forced, one job of 300 was
still worked twice, in 95 deadlocks. There is none on PostgreSQL, whose indexes have no row locks,
and none on SQLite, which has one writer.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from rota_lab.databases import Database, Deadlock
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
            created_at integer not null
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
            created_at integer not null
        )
    """,
}


class Laravel(Strategy):
    """A claim is a lock for as long as its transaction lasts, and then a time in the row."""

    name = "laravel"
    summary = (
        "Selects the first available job for update and reserves it, works, and then deletes it."
        " Where a delete is a deadlock's victim, the job expires and is worked again."
    )
    articles = (5,)
    databases = (Database.POSTGRES, Database.MARIADB, Database.SQLITE)
    patient = True
    defaults = {
        "retry_after": 4,
        "delete_attempts": 1,
        "delete_mark": 0,
        "queue_index": 1,
        "select_before_delete": 1,
        "force_queue_index": 0,
    }

    def make(self) -> None:
        self.db.execute(TABLES[self.location.database])
        if self.settings["queue_index"]:
            self.db.execute("create index jobs_queue_index on jobs (queue)")
        if self.settings["delete_mark"]:
            self.db.execute("alter table jobs add column delete_mark smallint not null default 0")

    def enqueue(self, jobs: Sequence[Job]) -> None:
        now = int(time.time())
        self.db.execute_many(
            "insert into jobs (queue, payload, attempts, reserved_at, available_at, created_at)"
            " values (%s, %s, 0, null, %s, %s)",
            [(QUEUE, job.text, now, now) for job in jobs],
        )

    def left(self) -> int:
        if self.settings["delete_mark"]:
            return int(self.db.rows("select count(*) from jobs where delete_mark = 0")[0][0])
        return int(self.db.rows("select count(*) from jobs")[0][0])

    def step(self, shift: Shift) -> bool:
        with shift.claiming():
            job = self._pop()
        if job is None:
            return False
        shift.work(job.payload)
        if self.settings["delete_mark"]:
            self.db.execute("update jobs set delete_mark = 1 where id = %s", job.id)
        self._delete(job.id, shift)
        return True

    def _pop(self) -> Any | None:
        while True:
            now = int(time.time())
            with self.db.transaction():
                job = self._next(now)
                if job is None:
                    return None
                if not (self.settings["delete_mark"] and job.delete_mark):
                    self.db.execute(
                        "update jobs set reserved_at = %s, attempts = attempts + 1 where id = %s",
                        now, job.id,
                    )  # fmt: skip
                    return job
                self.db.execute("delete from jobs where id = %s", job.id)

    def _next(self, now: int) -> Any | None:
        sql: LiteralString = "select * from jobs"
        if self.settings["force_queue_index"] and self.location.database is Database.MARIADB:
            sql += " force index (jobs_queue_index)"
        sql += (
            " where queue = %s"
            " and ((reserved_at is null and available_at <= %s) or (reserved_at <= %s))"
            " order by id asc limit 1"
        )
        if self.location.database is not Database.SQLITE:
            sql += " for update"
        return self.db.row(sql, QUEUE, now, now - int(self.settings["retry_after"]))

    def _delete(self, number: int, shift: Shift) -> None:
        attempts = int(self.settings["delete_attempts"])
        for attempt in range(1, attempts + 1):
            try:
                with self.db.transaction():
                    if self.settings["select_before_delete"] and self._find(number) is None:
                        return
                    self.db.execute("delete from jobs where id = %s", number)
            except Deadlock:
                if attempt == attempts:
                    raise
                shift.deadlock()
            else:
                return

    def _find(self, number: int) -> Any | None:
        sql: LiteralString = "select * from jobs where id = %s"
        if self.location.database is not Database.SQLITE:
            sql += " for update"
        return self.db.row(sql, number)


class LaravelRetry(Laravel):
    """The article's first remedy, "0-0-5" in its tables."""

    name = "laravel-retry"
    summary = (
        "The queue of laravel, with a delete that is tried five times and selects nothing before."
        " A delete that was a deadlock's victim is tried again, so few jobs are repeated."
    )
    variant = True
    defaults = {**Laravel.defaults, "delete_attempts": 5, "select_before_delete": 0}


class LaravelMark(Laravel):
    """The second one, "1-0-1"."""

    name = "laravel-mark"
    summary = (
        "The queue of laravel, which marks a job as done before it deletes it, by its primary key."
        " A worker that gets a marked job later deletes it and does not work it."
    )
    variant = True
    defaults = {**Laravel.defaults, "delete_mark": 1, "select_before_delete": 0}


class LaravelUnindexed(Laravel):
    """The third one, "noindex"."""

    name = "laravel-unindexed"
    summary = (
        "The queue of laravel, without the index on its queue column and with a single delete."
        " Claims walk the primary key, so there is no index to meet a delete in."
    )
    variant = True
    defaults = {**Laravel.defaults, "queue_index": 0, "select_before_delete": 0}
