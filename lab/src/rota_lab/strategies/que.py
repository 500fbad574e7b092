"""Walk over the jobs until an advisory lock is had: Que 0.x, which article 1 examines.

Reproduced: the locking statement that the article quotes, a recursive walk in the order of priority
and age that tries one advisory lock at a step; the jobs table and its primary key (queue, priority,
run_at, job_id), which is the index of the walk; session locks, so that no transaction is open
during the work; the delete by the whole key, and then the unlock. A smaller priority comes first.

Filled in from Que's source, as the article shows the lock only: between lock and work Que looks
whether the job is still there. It must: the statement may have seen a job in its snapshot whose
worker deleted it and let go of the lock before the lock was tried. A job that fails gets a later
run_at, by default count to the fourth plus 3 seconds; here it comes back at once, as with the
designs that roll back.
"""

import json
from collections.abc import Sequence

from rota_lab.databases import Database
from rota_lab.shift import Failed, Shift
from rota_lab.strategy import Job, Strategy


class Que(Strategy):
    """No worker waits: a job that another has is passed over, one step of the walk each."""

    name = "que"
    summary = (
        "Walks over the jobs in order, in a recursive query, until it has a job's advisory lock;"
        " works, and deletes the job."
        " No transaction is open during the work, but each claim walks over all dead rows."
    )
    articles = (1,)
    databases = (Database.POSTGRES,)

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
                "", "",
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
