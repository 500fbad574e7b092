"""Que, with a worker that locks several jobs in one walk: "Lock multiple jobs" in article 1.

Reproduced: Que as in `que`, and the article's paragraph: "have each worker lock more than one job
at a time, which distributes the cost of taking the lock". The article has no statement for it; a
larger limit on the outer select is enough, because the walk goes on as long as rows are asked for.
Filled in: how many (`batch`), and that a worker keeps what it has locked when one of its jobs
fails, and locks again only when it holds nothing: session locks are counted, and a worker that
locks a job twice must unlock it twice.

Its disadvantage is the article's too: "jobs can get stuck behind a long-running job that happened
to come out ahead of them in the same batch", although other workers have nothing to do.
"""

import json
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rota_lab.databases import Database
from rota_lab.location import Location
from rota_lab.shift import Failed, Shift
from rota_lab.strategy import Job, Strategy


class QueMany(Strategy):
    """One walk for several jobs, which no other worker can have until they are worked."""

    name = "que-many"
    summary = (
        "Is Que with a claim that locks several jobs, worked one after the other."
        " One walk over dead rows serves them all, but jobs wait behind a slow one of their batch."
    )
    articles = (1,)
    databases = (Database.POSTGRES,)
    defaults = {"batch": 10}

    def __init__(self, location: Location, settings: Mapping[str, float] | None = None) -> None:
        super().__init__(location, settings)
        self.locked: deque[Any] = deque()

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
        if not self.locked:
            with shift.claiming():
                self._lock()
        if not self.locked:
            return False
        job = self.locked.popleft()
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

    def _lock(self) -> None:
        self.locked.extend(
            self.db.rows(
                """
                WITH RECURSIVE jobs AS (
                  SELECT (j).*, pg_try_advisory_lock((j).job_id) AS locked
                  FROM (
                    SELECT j
                    FROM que_jobs AS j
                    WHERE queue = %s::text
                    AND run_at <= now()
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
                LIMIT %s
                """,
                "", "", int(self.settings["batch"]),
            )
        )  # fmt: skip
