"""Mark a row with the backend that works on it, valid while it lives: article 4's third solution.

Reproduced from "processor-2.py": the table with processed_by and its index; a select for update of
the first row that is not marked, or that a backend has marked which is gone (it is not in
pg_stat_get_activity); the mark, committed; the work; and the delete by the row's key and the own
mark, committed. The article's script dies when its work fails, which is what makes the row valid
again; here the worker leaves its connection and takes another one.

What the article does not say: a row is handed out twice if the claim has looked at the backends
before the one that gets the row had connected. A transaction looks at them once, and when its
`for update` has waited for a row and looks at the row's new mark, it asks what it saw then. And
the number of a backend that is gone may be given to another, which keeps the row from everybody.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rota_lab.databases import Database
from rota_lab.shift import Failed, Shift
from rota_lab.strategy import Job, Strategy


class ClaimedByPid(Strategy):
    """The claim is committed, so that others need not wait during the work."""

    name = "claimed-by-pid"
    summary = (
        "Marks the first row with the number of its own backend, commits, works, and deletes it."
        " The mark of a backend that is gone does not count; two commits a job are its price."
    )
    articles = (4,)
    databases = (Database.POSTGRES,)

    # The article's rows are a second apart, the first one many years ago.
    added_on = datetime.fromtimestamp(time.time() - 100_000_000, UTC)

    def make(self) -> None:
        self.db.execute("create table queue (job text, priority int4, added_on timestamptz)")
        self.db.execute("create index queue_idx on queue (priority desc, added_on asc)")
        self.db.execute("alter table queue add column processed_by int4")

    def enqueue(self, jobs: Sequence[Job]) -> None:
        rows = []
        for job in jobs:
            self.added_on += timedelta(seconds=1)
            rows.append((job.text, job.priority, self.added_on))
        self.db.execute_many("insert into queue values (%s, %s, %s)", rows)

    def left(self) -> int:
        return int(self.db.rows("select count(*) from queue")[0][0])

    def step(self, shift: Shift) -> bool:
        with shift.claiming(), self.db.transaction():
            row = self.db.row(
                "select * from queue where processed_by is null"
                " or not exists (select * from pg_stat_get_activity(processed_by))"
                " order by priority desc, added_on asc limit 1 for update"
            )
            if row is None:
                return False
            self.db.execute(
                "update queue set processed_by = pg_backend_pid()"
                " where priority = %s and added_on = %s",
                row.priority, row.added_on,
            )  # fmt: skip
        try:
            shift.work(row.job)
        except Failed:
            self.close()
            raise
        self.db.execute(
            "delete from queue"
            " where priority = %s and added_on = %s and processed_by = pg_backend_pid()",
            row.priority, row.added_on,
        )  # fmt: skip
        return True
