"""Lock one of the first jobs at random: queue_classic, which article 1 began with.

The article names it and its "relatively inefficient locking mechanism", and shows nothing of it.
Filled in from queue_classic 3.1: the jobs table with its index on unlocked rows, the trigger that
notifies, and the function lock_head, written anew here: count up to `top_bound` unlocked jobs,
choose one of them at random if there are that many, else the first; lock its row with nowait, again
and again until it is free; mark it as locked by this backend. Claims commit; the row is deleted
after the work. A worker begins by unlocking the jobs of backends that are gone; one that fails
stays locked, as queue_classic only logs it. Workers here look again instead of listening.

The random offset shall let workers get past each other at the head. But PostgreSQL locks the rows
that an offset skips ("rows skipped over by OFFSET will get locked", its manual says of select), so
that a worker that wants the fifth row locks the first four too. All claims meet at the first row
after all, and the second does not wait for it but spins.
"""

import json
from collections.abc import Sequence

from rota_lab.databases import Database
from rota_lab.shift import Shift
from rota_lab.strategy import Job, Strategy


class QueueClassic(Strategy):
    """Strict order is given up, so that workers want different rows."""

    name = "queue-classic"
    summary = (
        "Marks one of the first nine jobs, chosen at random, as locked, works, and deletes it."
        " Jobs come out of order, claims spin while the first row is locked, and what fails"
        " stays locked."
    )
    articles = (1,)
    databases = (Database.POSTGRES,)
    defaults = {"top_bound": 9}

    def make(self) -> None:
        self.db.execute(
            """
            create table queue_classic_jobs (
                id bigserial primary key,
                q_name text not null check (length(q_name) > 0),
                method text not null check (length(method) > 0),
                args json not null,
                locked_at timestamptz,
                locked_by integer
            )
            """
        )
        self.db.execute(
            "create index idx_qc_on_name_only_unlocked on queue_classic_jobs (q_name, id)"
            " where locked_at is null"
        )
        self.db.execute(
            """
            create function lock_head(wanted text, top_bound integer)
            returns setof queue_classic_jobs language plpgsql as $$
            declare
                place integer := 0;
                head bigint;
            begin
                if (select count(*) from (
                        select from queue_classic_jobs
                        where locked_at is null and q_name = wanted
                        limit top_bound
                    ) as unlocked) >= top_bound
                then
                    place := trunc(random() * (top_bound - 1));
                end if;
                loop
                    begin
                        select id into head from queue_classic_jobs
                        where locked_at is null and q_name = wanted
                        order by id limit 1 offset place for update nowait;
                        exit;
                    exception when lock_not_available then
                        null;
                    end;
                end loop;
                return query
                    update queue_classic_jobs
                    set locked_at = current_timestamp, locked_by = pg_backend_pid()
                    where id = head and locked_at is null
                    returning *;
            end
            $$
            """
        )
        self.db.execute(
            """
            create function queue_classic_notify() returns trigger language plpgsql as $$
            begin
                perform pg_notify(new.q_name, '');
                return null;
            end
            $$
            """
        )
        self.db.execute(
            "create trigger queue_classic_notify after insert on queue_classic_jobs"
            " for each row execute function queue_classic_notify()"
        )

    def enqueue(self, jobs: Sequence[Job]) -> None:
        self.db.execute_many(
            "insert into queue_classic_jobs (q_name, method, args)"
            " values ('default', 'Work.perform', %s)",
            [(json.dumps([job.text]),) for job in jobs],
        )

    def left(self) -> int:
        return int(self.db.rows("select count(*) from queue_classic_jobs")[0][0])

    def run(self, shift: Shift) -> None:
        self.db.execute(
            "update queue_classic_jobs set locked_at = null, locked_by = null"
            " where locked_by not in (select pid from pg_stat_activity)"
        )
        super().run(shift)

    def step(self, shift: Shift) -> bool:
        with shift.claiming():
            job = self.db.row(
                "select * from lock_head(%s, %s)", "default", int(self.settings["top_bound"])
            )
        if job is None:
            return False
        shift.work(job.args[0])
        self.db.execute("delete from queue_classic_jobs where id = %s", job.id)
        return True
