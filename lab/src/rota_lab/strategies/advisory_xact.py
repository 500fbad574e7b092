"""Try an advisory lock for each row until one is had: article 4's last solution.

Reproduced from "processor-3.py": the table and its index; the select whose condition is
pg_try_advisory_xact_lock(123, hash of the row's key), `for update`; and one transaction around the
select, the work and the delete. The second design has `for no key update`, as a comment proposes
"which causes less contention when you have foreign keys pointing to the queue table". It does: a
row that refers to a job can be stored while the job is worked. The third has no such clause, which
another comment asks for, because the advisory lock is "sufficient".

It is not sufficient, although the answers say so too: the clause is what keeps a row from being
worked twice. A claim may see a row in its snapshot that its worker then deletes; when that worker
commits, the advisory lock is free and the claim has it. `for update` finds that the row is gone and
goes on to the next one; without it the row is worked again.

All of them need the index for the order. Where the planner takes a row count to be so small that it
sorts instead, such as after an analyze of a nearly empty table, the condition is tried on every row
before the first one is taken: one worker locks all rows, and the others find nothing.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rota_lab.databases import Database
from rota_lab.shift import Shift
from rota_lab.strategy import Job, Strategy


class AdvisoryXact(Strategy):
    """Rows whose lock is taken are passed over, in a plain where clause."""

    name = "advisory-xact"
    summary = (
        "Selects for update the first row whose advisory lock it can have, works, and deletes it."
        " Workers do not wait for each other, as long as the planner walks over the index."
    )
    articles = (4,)
    databases = (Database.POSTGRES,)

    # The article's rows are a second apart, the first one many years ago.
    added_on = datetime.fromtimestamp(time.time() - 100_000_000, UTC)

    def make(self) -> None:
        self.db.execute("create table queue (job text, priority int4, added_on timestamptz)")
        self.db.execute("create index queue_idx on queue (priority desc, added_on asc)")

    def enqueue(self, jobs: Sequence[Job]) -> None:
        rows = []
        for job in jobs:
            self.added_on += timedelta(seconds=1)
            rows.append((job.text, job.priority, self.added_on))
        self.db.execute_many("insert into queue values (%s, %s, %s)", rows)

    def left(self) -> int:
        return int(self.db.rows("select count(*) from queue")[0][0])

    def step(self, shift: Shift) -> bool:
        with self.db.transaction():
            with shift.claiming():
                row = self._select()
            if row is None:
                return False
            shift.work(row.job)
            self.db.execute(
                "delete from queue where priority = %s and added_on = %s",
                row.priority, row.added_on,
            )  # fmt: skip
        return True

    def _select(self) -> Any | None:
        return self.db.row(
            "select * from queue where pg_try_advisory_xact_lock("
            "123, hashtext(priority::text || added_on::text))"
            " order by priority desc, added_on asc limit 1 for update"
        )


class AdvisoryXactNoKey(AdvisoryXact):
    """The same with a weaker row lock, which lets others refer to the row."""

    name = "advisory-xact-no-key"
    summary = (
        "Is advisory-xact with for no key update."
        " Rows of other tables can refer to a job that is at work without waiting for it."
    )
    variant = True

    def _select(self) -> Any | None:
        return self.db.row(
            "select * from queue where pg_try_advisory_xact_lock("
            "123, hashtext(priority::text || added_on::text))"
            " order by priority desc, added_on asc limit 1 for no key update"
        )


class AdvisoryXactAlone(AdvisoryXact):
    """The same without a row lock: a row that has just been worked may be worked again."""

    name = "advisory-xact-alone"
    summary = (
        "Is advisory-xact without for update."
        " A worker that comes by just as another one commits gets the row that is gone."
    )
    variant = True

    def _select(self) -> Any | None:
        return self.db.row(
            "select * from queue where pg_try_advisory_xact_lock("
            "123, hashtext(priority::text || added_on::text))"
            " order by priority desc, added_on asc limit 1"
        )
