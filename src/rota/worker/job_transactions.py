"""Jobs whose handlers complete them in a transaction: what the worker still has to do about them.

Nothing, where the transaction is committed: the job is completed, whatever the handler says after
that. Everything as usual, where it was rolled back. And where that is not known (the caller
commits, or prepares, or the connection broke at the commit), the job is handed over.
"""

import contextlib
import logging
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from rota.app.executor import Executor
from rota.app.grafting import Grafting
from rota.app.job_steps import JobSteps
from rota.app.job_transaction import Completion, JobTransaction, Stage
from rota.app.successor import followed
from rota.app.task import Task
from rota.errors import LeaseLost
from rota.model.chosen import unchosen
from rota.model.job import ClaimedJob, JobId, LeaseId, SessionId
from rota.model.notes import Notes
from rota.model.settlement import Settlement, completed, decide
from rota.model.states import Move
from rota.outcome import Outcome
from rota.worker.apps import Apps
from rota.worker.executors.remote import Transacted
from rota.worker.leases import Leases
from rota.worker.switchboard import Switchboard

logger = logging.getLogger("rota")


class RolledBack(Exception):
    """The transaction that was to complete the job was rolled back."""


class JobTransactions:
    """The transactions of a worker's handlers. `completions` is empty where there are none."""

    def __init__(self, apps: Apps, leases: Leases, switchboard: Switchboard, notes: Notes) -> None:
        # By job and lease, as claimed: a job that was lost may come back while its old run lasts.
        self.completions: dict[tuple[JobId, LeaseId], Completion] = {}
        self._apps = apps
        self._leases = leases
        self._switchboard = switchboard
        self._notes = notes

    @property
    def database(self) -> str:
        """Which database the worker works on, whatever its URL."""
        return self._apps.identity

    def transact(self, job: ClaimedJob, conn: object, commit: bool) -> JobTransaction:  # noqa: FBT001
        """Make the transaction of a job that runs here. Called by its handler, in any thread.

        Raises:
            LeaseLost: The worker has given the job back: the handler is a thread that goes on.
        """
        database = self._apps.tasks[job.task].enqueuing.database
        return JobTransaction(database, self._hold(job), conn, commit=commit)

    def remember(self, job: ClaimedJob) -> JobSteps:
        """The memory of a job that runs here. Called by its handler, in any thread.

        Raises:
            LeaseLost: The worker has given the job back: the handler is a thread that goes on.
        """
        task = self._apps.tasks[job.task]
        awaits = task.executor is Executor.LOOP
        return JobSteps(task.enqueuing.database, self._hold(job), awaits=awaits)

    def grafts(self, job: ClaimedJob) -> Grafting:
        """What adds to the flow of a job that runs here. Called by its handler, in any thread.

        Raises:
            ConfigError: The job belongs to no flow.
        """
        return Grafting(self._apps.tasks[job.task].enqueuing, job)

    def _hold(self, job: ClaimedJob) -> Completion:
        completion = self.completions.get((job.id, job.lease))
        if completion is None:
            completion = self.completions[job.id, job.lease] = Completion(
                job,
                self.session(job),
                self._apps.tasks[job.task],
                moving=self._leases.moving,
                doubtful=self._switchboard.doubt,
            )
        return completion

    def session(self, job: ClaimedJob) -> SessionId:
        """The session that holds a job which runs here.

        Raises:
            LeaseLost: The worker has given the job back.
        """
        try:
            return self._leases.session(job.lease)
        except KeyError:
            message = f"job {job.id} was given back while its handler went on"
            raise LeaseLost(message) from None

    def absorb(self, job: ClaimedJob, told: Transacted) -> None:
        """Take in what has become of the transaction of a handler that has run in another process."""
        completion = self._hold(job)
        lease = LeaseId(told.lease)
        if lease != job.lease:
            self._leases.moved(job.lease, lease)
            completion.job = replace(job, lease=lease)
        completion.stage = Stage[told.stage]
        completion.following = told.following
        if completion.over:
            completion.settlement = self._completed(completion, told.result)

    def lose(self, job: ClaimedJob) -> None:
        """The handler's process is out of sight: its transaction may have committed, or may yet."""
        with contextlib.suppress(LeaseLost):
            completion = self._hold(job)
            completion.stage = Stage.UNSEEN
            completion.settlement = self._completed(completion, None)

    @staticmethod
    def _completed(completion: Completion, result: str | None) -> Settlement:
        job = completion.job
        return completed(job, completion.task.keeps[job.queue].completed, result)

    def log_late(self, job: ClaimedJob, error: BaseException) -> None:
        """Log an exception that comes after the job was completed."""
        completion = self.completions.get((job.id, job.lease))
        if completion is None or completion.stage is not Stage.COMPLETED:
            return
        if isinstance(error, Outcome):
            return
        completion.failed_late = True
        logger.error(
            "job %d (%s): its handler failed after the transaction that completes it; the job is "
            "not run again because of that",
            job.id,
            job.task,
            exc_info=error,
        )

    def conclude(
        self, job: ClaimedJob, task: Task[..., Any, Any], settlement: Settlement | None
    ) -> Settlement | None:
        """The settlement that is still to be written of a run that has ended with this one."""
        completion = self.completions.pop((job.id, job.lease), None)
        if completion is None:
            return settlement
        lease = completion.job.lease
        if completion.stage is Stage.UNSEEN and settlement is None:
            # The session is lost, too: whatever becomes of the transaction, others have the job.
            return None
        if not completion.over or completion.settlement is None:
            if lease != job.lease:
                self._notes.moved(job.id, job.lease, lease)
            return settlement and settlement._replace(lease=lease)
        if completion.stage is Stage.COMPLETED:
            self._look_at_the_rest(job, completion, settlement)
            self._switchboard.settled()
            if completion.settlement.node is not None:
                self._switchboard.decide(completion.settlement.node)
            self._leases.settled(lease)
            self._apps.events.settled(job, completion.settlement)
            self._apps.events.following(completion.following)
            return None
        if settlement is None or settlement.move is Move.COMPLETE:
            lost = RolledBack("the transaction that was to complete the job was rolled back")
            settlement = decide(job, lost, unchosen(task.retry), now=datetime.now(UTC))
            if task.chained or job.headers is not None:
                settlement = followed(settlement, job, task)
        self._switchboard.leave_in_doubt(job, completion, settlement._replace(lease=lease))
        return None

    @staticmethod
    def _look_at_the_rest(
        job: ClaimedJob, completion: Completion, settlement: Settlement | None
    ) -> None:
        """Warn where what a handler says after its transaction is not heeded."""
        if settlement is None:
            return
        if (
            settlement.move in {Move.SNOOZE, Move.AGAIN, Move.DISCARD, Move.RETRY}
            and not completion.failed_late
        ):
            logger.warning(
                "job %d (%s): its transaction completes it, so what its handler said after "
                "that (%s) is ignored; raise it in the block",
                job.id,
                job.task,
                settlement.move.value,
            )
        stored = completion.settlement and completion.settlement.result
        if settlement.result not in {None, "null", stored}:
            logger.warning(
                "job %d (%s): what its handler returned after its transaction is not stored; "
                "call tx.result(value) in the block",
                job.id,
                job.task,
            )
