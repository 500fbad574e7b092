"""Update the first row that is not done, which a subselect finds for update: article 2's "tricks".

Reproduced: the update whose subselect has `for update limit 1`, the table of its queue with is_done
(and a column for the job besides), and an open transaction around the work, as in "solutions that
rely on locking the row while the worker proceeds". Rows that are done stay, as the article never
removes them, and claims walk past them. The second design is the first one without `for update`.

The article says of the first that a worker that has waited gets "zero rows" when the other one
commits. That has not been so since PostgreSQL 9.0, as a comment on it says: `for update` looks
whether a row that it has waited for still matches (EvalPlanQual), and if it does not, goes on to
the next one before the limit counts it. What stays true is that all workers wait for one. Only with
the condition on the update itself, and without `for update` on the subselect, does a worker still
come back with nothing: the subselect is not run again.

Of the second the article says that "one won't wait on a lock". It does, on that of the update;
then it updates the row that is done, and returns it.
"""

from collections.abc import Sequence
from typing import Any

from rota_lab.databases import Database
from rota_lab.shift import Shift
from rota_lab.strategy import Job, Strategy


class ForUpdateSubselect(Strategy):
    """The second worker waits in the subselect, and then gets the next row."""

    name = "for-update-subselect"
    summary = (
        "Marks the first row that is not done, found by a subselect for update, and works before it"
        " commits. No row is worked twice, but all workers wait for the one that has the first row."
    )
    articles = (2,)
    databases = (Database.POSTGRES,)

    def make(self) -> None:
        self.db.execute(
            "create table queue (itemid integer primary key generated always as identity,"
            " is_done boolean not null default 'f', job text)"
        )

    def enqueue(self, jobs: Sequence[Job]) -> None:
        self.db.execute_many("insert into queue (job) values (%s)", [(job.text,) for job in jobs])

    def left(self) -> int:
        return int(self.db.rows("select count(*) from queue where not is_done")[0][0])

    def step(self, shift: Shift) -> bool:
        with self.db.transaction():
            with shift.claiming():
                row = self._update()
            if row is None:
                return False
            shift.work(row.job)
        return True

    def _update(self) -> Any | None:
        return self.db.row(
            "update queue set is_done = 't' where itemid = ("
            " select itemid from queue where not is_done order by itemid for update limit 1"
            ") returning *"
        )


class UnlockedSubselect(ForUpdateSubselect):
    """The second worker waits in the update, and then gets the same row."""

    name = "unlocked-subselect"
    summary = (
        "Is for-update-subselect without the for update."
        " Workers that find the same row wait for each other, and then all get it."
    )
    variant = True

    def _update(self) -> Any | None:
        return self.db.row(
            "update queue set is_done = 't' where itemid = ("
            " select itemid from queue where not is_done order by itemid limit 1"
            ") returning *"
        )
