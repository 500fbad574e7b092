"""Delete a row with skip locked, prepare, work, commit: article 2's answer for work elsewhere.

Reproduced: the delete of `skip-locked`, and what the article says of two-phase commit: "items will
stay locked while an xact is prepared after PREPARE TRANSACTION has run, will become available
again if a prepared xact does a ROLLBACK PREPARED and will be removed when COMMIT PREPARED runs".

Filled in, as the article prints none of it: the order (delete, prepare, the outside effect, then
commit or roll back), and the name of the prepared transaction, which tells whose it is.

What the article does not say: a prepared transaction outlives its worker, its session and a restart
of the server. When a worker dies during its work, it is unknown whether the effect has happened,
and the row stays locked until an operator decides; meanwhile vacuum can remove nothing that is
younger. `recover = 1` decides for "not happened": a worker that finds nothing to claim rolls back
what the dead have prepared, and the effect may happen a second time.
"""

import contextlib
import secrets
from collections.abc import Callable, Sequence

from rota_lab.databases import Connection, Database
from rota_lab.shift import Failed, Shift
from rota_lab.strategy import Job, Strategy


class SkipLocked2PC(Strategy):
    """The delete is prepared before the work, and committed after it."""

    name = "skip-locked-2pc"
    summary = (
        "Deletes the first row that is not locked, prepares the transaction, works, and commits"
        " what it has prepared. A row whose worker has died stays locked until an operator decides."
    )
    articles = (2,)
    databases = (Database.POSTGRES,)
    defaults = {"recover": 0}

    @classmethod
    def lacking(cls, server: Callable[[], Connection]) -> str | None:
        with contextlib.closing(server()) as connection:
            if int(connection.rows("show max_prepared_transactions")[0][0]):
                return None
        return (
            "PostgreSQL prepares no transactions; set max_prepared_transactions to the number of"
            " workers or more, and restart it"
        )

    def make(self) -> None:
        self.db.execute(
            "create table queue (itemid integer primary key generated always as identity, job text)"
        )

    def enqueue(self, jobs: Sequence[Job]) -> None:
        self.db.execute_many("insert into queue (job) values (%s)", [(job.text,) for job in jobs])

    def left(self) -> int:
        return int(self.db.rows("select count(*) from queue")[0][0])

    def step(self, shift: Shift) -> bool:
        with shift.claiming():
            claimed = self._prepare()
        if claimed is None:
            return bool(self.settings["recover"]) and self._recover() and self.step(shift)
        name, job = claimed
        try:
            shift.work(job)
        except Failed:
            self.db.command("rollback prepared %s", name)
            raise
        self.db.command("commit prepared %s", name)
        return True

    def _prepare(self) -> tuple[str, str] | None:
        """Claim: the name of the prepared transaction, and the job."""
        self.db.begin()
        try:
            row = self.db.row(
                "delete from queue where itemid = ("
                " select itemid from queue order by itemid for update skip locked limit 1"
                ") returning *, pg_backend_pid() as pid"
            )
            if row is None:
                self.db.rollback()
                return None
            # Names are for the whole server, and this pid may have been another worker's before.
            name = f"rota-lab {row.pid} {secrets.token_hex(8)}"
            self.db.command("prepare transaction %s", name)
        except BaseException:
            self.db.rollback()
            raise
        return name, row.job

    def _recover(self) -> bool:
        """Roll back what the dead have prepared; whether there was something."""
        # One after the other: what is rolled back already would be an error.
        self.db.rows("select pg_advisory_lock(2)")
        rows = self.db.rows(
            "select gid from pg_prepared_xacts"
            " where database = current_database() and starts_with(gid, 'rota-lab ')"
            " and split_part(gid, ' ', 2) not in (select pid::text from pg_stat_activity)"
        )
        for row in rows:
            self.db.command("rollback prepared %s", row.gid)
        self.db.rows("select pg_advisory_unlock(2)")
        return bool(rows)
