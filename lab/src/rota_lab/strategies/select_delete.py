"""Select the first row, work, delete it: article 4's first solution.

Reproduced from "processor-1.py": the table and its index, the order by priority and age, the
delete by both, and one transaction around the select, the work and the delete.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rota_lab.databases import Database
from rota_lab.shift import Shift
from rota_lab.strategy import Job, Strategy


class SelectDelete(Strategy):
    """Nothing keeps two workers from the same row."""

    name = "select-delete"
    summary = (
        "Selects the first row, works, and deletes the row, without any lock."
        " Every worker gets the same rows."
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
                row = self.db.row(
                    "select * from queue order by priority desc, added_on asc limit 1"
                )
            if row is None:
                return False
            shift.work(row.job)
            self.db.execute(
                "delete from queue where priority = %s and added_on = %s",
                row.priority, row.added_on,
            )  # fmt: skip
        return True
