"""Que, with a worker that begins its walk behind the job it worked last: article 1's patch.

Reproduced: Que as in `que`, "last_job_id" in the first term of the recursive query, the work loop
that sets it, and the "lock jitter" that forgets it, after `jitter` seconds: 60 in the article, 10
in the patched Que, https://github.com/heroku/que, whose places for the condition and for setting
last_job_id these are. Filled in: a worker that drains forgets it too before it gives up, because
jobs may be left that come before.

The article expects that the search "takes it to a live job right away". It does not: run_at stands
before job_id in the index and has a range, so that job_id bounds nothing. The scan still reads the
index entry of every dead row; what it is spared is the visit to the row itself. So claims get
cheaper by a factor and still grow with the dead rows, which is the cliff that the article came to.
It is so with PostgreSQL 18 too, unless many jobs have the same run_at, as those have that one
transaction enqueues: its skip scan then does go to a live job right away.

Jobs of different priorities show what else last_job_id does: a job with a smaller id than the last
one is passed over until the jitter, however urgent it is.
"""

import json
import time
from collections.abc import Mapping, Sequence

from rota_lab.databases import Database
from rota_lab.location import Location
from rota_lab.shift import Failed, Shift
from rota_lab.strategy import Job, Strategy


class QueLastId(Strategy):
    """A worker remembers where it was, and forgets it now and then."""

    name = "que-last-id"
    summary = (
        "Is Que with a claim that begins behind the worker's last job, which it forgets every"
        " minute so that no job is passed over for ever."
        " Claims no longer visit dead rows, but still read their index entries."
    )
    articles = (1,)
    databases = (Database.POSTGRES,)
    defaults = {"jitter": 60}

    def __init__(self, location: Location, settings: Mapping[str, float] | None = None) -> None:
        super().__init__(location, settings)
        self.last_job_id = 0
        self.start = time.monotonic()

    def make(self) -> None:
        self.db.execute(
            """
            create table que_jobs (
                priority    smallint    not null default 100,
                run_at      timestamptz not null default now(),
                job_id      bigserial   not null,
                job_class   text        not null,
                args        json        not null default '[]'::json,
                error_count integer     not null default 0,
                last_error  text,
                queue       text        not null default '',
                constraint que_jobs_pkey primary key (queue, priority, run_at, job_id)
            )
            """
        )

    def enqueue(self, jobs: Sequence[Job]) -> None:
        self.db.execute_many(
            "insert into que_jobs (priority, job_class, args) values (%s, 'Work', %s)",
            [(100 - job.priority, json.dumps([job.text])) for job in jobs],
        )

    def left(self) -> int:
        return int(self.db.rows("select count(*) from que_jobs")[0][0])

    def step(self, shift: Shift) -> bool:
        if time.monotonic() > self.start + self.settings["jitter"]:
            self.last_job_id = 0
            self.start = time.monotonic()
        found = self._step(shift)
        if not found and shift.drain and self.last_job_id:
            self.last_job_id = 0
            found = self._step(shift)
        return found

    def _step(self, shift: Shift) -> bool:
        with shift.claiming():
            job = self.db.row(
                """
                WITH RECURSIVE jobs AS (
                  SELECT (j).*, pg_try_advisory_lock((j).job_id) AS locked
                  FROM (
                    SELECT j
                    FROM que_jobs AS j
                    WHERE queue = %s::text
                    AND run_at <= now()
                    AND job_id > %s::bigint
                    ORDER BY priority, run_at, job_id
                    LIMIT 1
                  ) AS t1
                  UNION ALL (
                    SELECT (j).*, pg_try_advisory_lock((j).job_id) AS locked
                    FROM (
                      SELECT (
                        SELECT j
                        FROM que_jobs AS j
                        WHERE queue = %s::text
                        AND run_at <= now()
                        AND (priority, run_at, job_id)
                          > (jobs.priority, jobs.run_at, jobs.job_id)
                        ORDER BY priority, run_at, job_id
                        LIMIT 1
                      ) AS j
                      FROM jobs
                      WHERE jobs.job_id IS NOT NULL
                      LIMIT 1
                    ) AS t1
                  )
                )
                SELECT queue, priority, run_at, job_id, job_class, args, error_count
                FROM jobs
                WHERE locked
                LIMIT 1
                """,
                "", self.last_job_id, "",
            )  # fmt: skip
        if job is None:
            return False
        key = (job.queue, job.priority, job.run_at, job.job_id)
        try:
            there = self.db.row(
                "select 1 from que_jobs"
                " where queue = %s and priority = %s and run_at = %s and job_id = %s",
                *key,
            )
            if there is not None:
                shift.work(job.args[0])
                self.db.execute(
                    "delete from que_jobs"
                    " where queue = %s and priority = %s and run_at = %s and job_id = %s",
                    *key,
                )
                self.last_job_id = job.job_id
        except Failed as error:
            self.db.execute(
                "update que_jobs"
                " set error_count = error_count + 1, run_at = now(), last_error = %s"
                " where queue = %s and priority = %s and run_at = %s and job_id = %s",
                str(error), *key,
            )  # fmt: skip
            raise
        finally:
            self.db.rows("select pg_advisory_unlock(%s)", job.job_id)
        return True
