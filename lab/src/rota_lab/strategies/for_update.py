"""Select the first row for update, work, delete it: article 4's second solution.

Reproduced: the table and its index, `for update` on the select, and one transaction around the
select, the work and the delete. Article 2 names the same mistake: "it thinks it's handing jobs out
concurrently, but in practice all but one worker are blocked on a row lock".
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rota_lab.databases import Database
from rota_lab.shift import Shift
from rota_lab.strategy import Job, Strategy


class ForUpdate(Strategy):
    """The second worker waits for the first, and then takes the next row."""

    name = "for-update"
    summary = (
        "Selects the first row for update, works, and deletes the row in the same transaction."
        " No row is worked twice, but all workers wait for the one that has the first row."
    )
    articles = (4, 2)
    databases = (Database.POSTGRES, Database.MARIADB)

    # The article's rows are a second apart, the first one many years ago.
    added_on = datetime.fromtimestamp(time.time() - 100_000_000, UTC)

    def make(self) -> None:
        if self.location.database is Database.MARIADB:
            self.db.execute(
                "create table queue (job varchar(255), priority int, added_on datetime(6))"
            )
        else:
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
                    "select * from queue order by priority desc, added_on asc limit 1 for update"
                )
            if row is None:
                return False
            shift.work(row.job)
            self.db.execute(
                "delete from queue where priority = %s and added_on = %s",
                row.priority, row.added_on,
            )  # fmt: skip
        return True
