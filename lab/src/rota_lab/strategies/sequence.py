"""A second sequence hands out the ids of rows: an idea in a comment on article 2.

Reproduced: the table and the two sequences, pk for rows that come in and getpk for rows that are
handed out; "select nextval('getpk') to get queue record, and flag a status", "flag is_done when job
complete", and requests that go on until both sequences are equal. Filled in: a column for the job
and one for the status (taken); that both commit at once; and the sequences' last_value, because
currval is of one's own session only. Rows that are done stay, as nothing is said of removing them.

The reply names the flaw: "if a transaction that's acquiring a job rolls back you'll lose that job",
because a sequence never goes back. So does a worker that fails or dies. And so does a job whose
number comes up before the transaction that enqueues it has committed, which the reply does not
name: the row is not visible yet, and its number is never asked for again.

The second design has the remedy of the comment: "when a job is detected to have died (eg taken too
long), select a new value into itemid". Its detection here: what is not done some seconds after
getpk has gone past it has taken too long. A worker that is merely slow is thought dead too, and its
job is worked again.
"""

from collections.abc import Sequence

from rota_lab.databases import Database
from rota_lab.shift import Shift
from rota_lab.strategy import Job, Strategy


class Sequences(Strategy):
    """No two workers get the same number, and none comes up twice."""

    name = "sequence"
    summary = (
        "Takes the number of the next row from a sequence, so that claims neither search nor wait."
        " A job is lost if its claim rolls back, its worker dies, or its row is not committed yet."
    )
    articles = (2,)
    databases = (Database.POSTGRES,)

    def make(self) -> None:
        self.db.execute("create sequence pk minvalue 0")
        self.db.execute("create sequence getpk minvalue 0")
        # Both begin at 0, so that their last values are equal while there is nothing.
        self.db.rows("select nextval('pk') as pk, nextval('getpk') as getpk")
        self.db.execute(
            "create table queue (itemid integer primary key, initialitemid integer,"
            " is_done boolean not null default 'f', taken boolean not null default 'f', job text)"
        )

    def enqueue(self, jobs: Sequence[Job]) -> None:
        self.db.execute_many(
            "insert into queue (itemid, initialitemid, job)"
            " values (nextval('pk'), currval('pk'), %s)",
            [(job.text,) for job in jobs],
        )

    def left(self) -> int:
        return int(self.db.rows("select count(*) from queue where not is_done")[0][0])

    def step(self, shift: Shift) -> bool:
        row = None
        with shift.claiming():
            while row is None:
                [more] = self.db.rows(
                    "select getpk.last_value < pk.last_value as yes from getpk, pk"
                )
                if not more.yes:
                    return False
                with self.db.transaction():
                    [number] = self.db.rows("select nextval('getpk')")
                    row = self.db.row(
                        "update queue set taken = 't' where itemid = %s returning *", number.nextval
                    )
        shift.work(row.job)
        self.db.execute("update queue set is_done = 't' where itemid = %s", row.itemid)
        return True


class RequeuedSequences(Sequences):
    """Something walks behind the queue and gives new numbers to what was lost."""

    name = "sequence-requeued"
    summary = (
        "Is sequence, with a process that gives a new number to jobs that take too long."
        " No job is lost, but one whose worker is merely slow is worked twice."
    )
    variant = True
    attended = True
    defaults = {"too_long": 5}

    def attend(self, shift: Shift) -> None:
        while not shift.over.is_set():
            [past] = self.db.rows("select last_value from getpk")
            shift.over.wait(self.settings["too_long"])
            self.db.execute(
                "update queue set itemid = nextval('pk'), taken = 'f'"
                " where not is_done and itemid <= %s",
                past.last_value,
            )

    def step(self, shift: Shift) -> bool:
        while not (found := super().step(shift)):
            # What others are at may get a new number; it is over when all is done.
            if shift.over.is_set() or not shift.drain or not self.left():
                break
            shift.rest()
        return found
