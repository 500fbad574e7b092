"""Delete the first row that is not locked, work in the same transaction: article 2's solution.

Reproduced: the delete whose subselect is `for update skip locked limit 1`, `returning *`, and the
work "in the same transaction", so that a crash or a rollback makes the row available again. The
table has a column for the job besides. MariaDB deletes with no such subselect of the same table;
there it is a select and a delete.
"""

from collections.abc import Sequence
from typing import Any

from rota_lab.databases import Database
from rota_lab.shift import Shift
from rota_lab.strategy import Job, Strategy


class SkipLocked(Strategy):
    """Rows that others have locked are passed over, as if they were not there."""

    name = "skip-locked"
    summary = (
        "Deletes the first row that is not locked (skip locked), and works before it commits."
        " Workers do not wait for each other, and a crash gives the row back at once."
    )
    articles = (2,)
    databases = (Database.POSTGRES, Database.MARIADB)

    def make(self) -> None:
        if self.location.database is Database.MARIADB:
            self.db.execute(
                "create table queue (itemid integer primary key auto_increment, job varchar(255))"
            )
        else:
            self.db.execute(
                "create table queue"
                " (itemid integer primary key generated always as identity, job text)"
            )

    def enqueue(self, jobs: Sequence[Job]) -> None:
        self.db.execute_many("insert into queue (job) values (%s)", [(job.text,) for job in jobs])

    def left(self) -> int:
        return int(self.db.rows("select count(*) from queue")[0][0])

    def step(self, shift: Shift) -> bool:
        with self.db.transaction():
            with shift.claiming():
                row = self._delete()
            if row is None:
                return False
            shift.work(row.job)
        return True

    def _delete(self) -> Any | None:
        if self.location.database is Database.MARIADB:
            row = self.db.row("select * from queue order by itemid limit 1 for update skip locked")
            if row is not None:
                self.db.execute("delete from queue where itemid = %s", row.itemid)
            return row
        return self.db.row(
            "delete from queue where itemid = ("
            " select itemid from queue order by itemid for update skip locked limit 1"
            ") returning *"
        )
