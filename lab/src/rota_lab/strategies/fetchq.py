"""FetchQ: one statement picks a task and counts it: article 3.

Reproduced: both tables; the picking, completing, inserting and upserting statements that keep the
counters, in their last and longest forms. A pick sets `next_iteration` 5 minutes ahead, so that a
task whose worker has died comes back by itself. Five attempts are all that a task gets.

Filled in: what completes by deleting (the article prints it without counters); tasks to insert
come as an array; `skip locked` stands once (the article's "FOR UPDATE FOR UPDATE SKIP LOCKED" is
accepted by PostgreSQL, and means the same).

Changed, as the printed statements do not do it:

- Completing sets `iterations`; the first form says "iteration", a column that is not there.
- Completing takes one off "wip". The article's takes another one off "pnd", which the pick has
  done already, and nothing is ever taken off "wip".
- A pick returns what it has set. The article's outer select reads the table as it was before the
  statement: with the old attempts, and with a `next_iteration` that is past.

What does not hold:

- The counters drift all the same. They follow statements, and tasks also change as time passes:
  a planned task becomes pending, and one whose worker has died, without any statement.
- Picks go one by one: each locks the counter's row until it is committed.
- An upsert of a task at work sets `next_iteration` back, and so hands it to a second worker.
- "`NOW()` is an impure function, hence we force Postgres to run a full scan": now() is stable in a
  transaction and an index serves it; the scan comes from the schema, which has no index for it
  (`time_index = 1` makes one).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import LiteralString

from rota_lab.databases import Database
from rota_lab.shift import Shift
from rota_lab.strategy import Job, Strategy

TASKS = """
    create table tasks (
        subject character varying(50) primary key,
        payload jsonb default '{}',
        status integer default 0,
        attempts integer default 0,
        iterations integer default 0,
        next_iteration timestamp with time zone,
        last_iteration timestamp with time zone
    )
"""
METRICS = """
    create table metrics (
        metric character varying(50) primary key,
        amount integer default 0
    )
"""

PICK = """
    with
    pick_tasks as (
        update tasks set
            attempts = attempts + 1,
            next_iteration = now() + make_interval(secs => %s)
        where subject in (
            select subject from tasks
            where next_iteration <= now()
            and attempts < 5
            order by next_iteration asc, attempts asc
            limit 1
            for update skip locked
        ) returning *
    ),
    increment_wip as (
        insert into metrics as t (metric, amount)
        select 'wip', (select count(subject) from pick_tasks)
        on conflict (metric) do
        update set amount = t.amount + excluded.amount
    ),
    decrement_pnd as (
        insert into metrics as t (metric, amount)
        select 'pnd', 0 - (select count(subject) from pick_tasks)
        on conflict (metric) do
        update set amount = t.amount + excluded.amount
    )
    select * from pick_tasks
"""
RESCHEDULE = """
    with
    completed_tasks as (
        update tasks set
            attempts = 0,
            iterations = iterations + 1,
            last_iteration = now(),
            next_iteration = now() + interval '1 year'
        where subject = %s
        returning *
    ),
    increment_pln as (
        insert into metrics as t (metric, amount)
        select 'pln', (select count(subject) from completed_tasks)
        on conflict (metric) do
        update set amount = t.amount + excluded.amount
    )
    insert into metrics as t (metric, amount)
    select 'wip', 0 - (select count(subject) from completed_tasks)
    on conflict (metric) do
    update set amount = t.amount + excluded.amount
"""
DELETE = """
    with
    completed_tasks as (
        delete from tasks where subject = %s
        returning *
    )
    insert into metrics as t (metric, amount)
    select 'wip', 0 - (select count(subject) from completed_tasks)
    on conflict (metric) do
    update set amount = t.amount + excluded.amount
"""

INSERT = """
    with
    inserted_tasks as (
        insert into tasks (subject, next_iteration)
        select subject, now() from unnest(%s::text[]) as subject
        on conflict (subject) do nothing
        returning *
    ),
    increment_pln as (
        insert into metrics as t (metric, amount)
        select 'pln', (
            select count(subject) from inserted_tasks
            where next_iteration > now()
        )
        on conflict (metric) do
        update set amount = t.amount + excluded.amount
    ),
    increment_pnd as (
        insert into metrics as t (metric, amount)
        select 'pnd', (
            select count(subject) from inserted_tasks
            where next_iteration <= now()
        )
        on conflict (metric) do
        update set amount = t.amount + excluded.amount
    )
    select * from inserted_tasks
"""
UPSERT = """
    with
    all_docs (subject, payload, next_iteration) as (
        select subject, '{}', now() from unnest(%s::text[]) as subject
    ),
    inserted_docs as (
        insert into tasks (subject, payload, next_iteration)
        select subject, payload::jsonb, next_iteration from all_docs
        on conflict (subject) do nothing
        returning *
    ),
    skipped_docs as (
        select
            _source.*,
            _values.payload as payload_new,
            _values.next_iteration as next_iteration_new,
            _source.next_iteration as next_iteration_old
        from tasks as _source
        join all_docs as _values on _source.subject = _values.subject
        where _source.subject not in (select subject from inserted_docs)
        for update skip locked
    ),
    updated_docs as (
        update tasks
        set
            payload = _value.payload_new::jsonb,
            next_iteration = _value.next_iteration_new
        from (
            select * from skipped_docs
        ) as _value
        where tasks.subject = _value.subject
        returning _value.*
    ),
    increment_pln as (
        insert into metrics as t (metric, amount)
        select 'pln', (
            (select count(subject) from inserted_docs where next_iteration > now())
            + (
                select count(subject) from updated_docs
                where next_iteration_old <= now() and next_iteration_new > now()
            )
            - (
                select count(subject) from updated_docs
                where next_iteration_old > now() and next_iteration_new <= now()
            )
        )
        on conflict (metric) do
        update set amount = t.amount + excluded.amount
    ),
    increment_pnd as (
        insert into metrics as t (metric, amount)
        select 'pnd', (
            (select count(subject) from inserted_docs where next_iteration <= now())
            + (
                select count(subject) from updated_docs
                where next_iteration_old > now() and next_iteration_new <= now()
            )
            - (
                select count(subject) from updated_docs
                where next_iteration_old <= now() and next_iteration_new > now()
            )
        )
        on conflict (metric) do
        update set amount = t.amount + excluded.amount
    )
    select 'updated' as action, subject from updated_docs
    union all
    select 'created' as action, subject from inserted_docs
"""


class FetchQ(Strategy):
    """The date that says when a task is due is also the lock of the worker that has picked it."""

    name = "fetchq"
    summary = (
        "Picks the oldest due task with skip locked, and makes it due again in 5 minutes."
        " No worker waits for another's work, and the task of a worker that has died comes back then."
    )
    articles = (3,)
    databases = (Database.POSTGRES,)
    patient = True
    defaults = {"lock_seconds": 300, "reschedule": 0, "upsert": 0, "time_index": 0}

    def make(self) -> None:
        self.db.execute(TASKS)
        self.db.execute(METRICS)
        if self.settings["time_index"]:
            self.db.execute("create index tasks_next on tasks (next_iteration, attempts)")

    def enqueue(self, jobs: Sequence[Job]) -> None:
        sql: LiteralString = UPSERT if self.settings["upsert"] else INSERT
        self.db.rows(sql, [job.text for job in jobs])

    def left(self) -> int:
        # Those that are planned for another time are done, and those with five attempts are dead
        # unless the fifth is going on.
        return int(
            self.db.rows(
                "select count(*) from tasks"
                " where iterations = 0 and (attempts < 5 or next_iteration > now())"
            )[0][0]
        )

    def counts(self) -> Mapping[str, Callable[[], object]]:
        return {
            **super().counts(),
            "counters": lambda: self.db.rows("select metric, amount from metrics"),
        }

    def step(self, shift: Shift) -> bool:
        with shift.claiming():
            task = self.db.row(PICK, self.settings["lock_seconds"])
        if task is None:
            return False
        shift.work(task.subject)
        self.db.execute(RESCHEDULE if self.settings["reschedule"] else DELETE, task.subject)
        return True
