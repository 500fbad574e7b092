"""A handler's transaction in another process than its worker's, on a connection of that process.

The fence is the same as in the worker: the lease is of the worker's session, and gone where the job
was given back, has failed in the worker's eyes, or was taken over with its session. So a node that
was cut off cannot commit.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from rota.app.job_transaction import Completion, JobTransaction, Stage
from rota.app.task import Task
from rota.errors import ConfigError
from rota.model.job import ClaimedJob, LeaseId, SessionId
from rota.store.url import VARIABLE
from rota.worker.executors.remote import Holder, Transacted

if TYPE_CHECKING:
    from rota.store.protocol import Store

_identities: "WeakKeyDictionary[Store, str]" = WeakKeyDictionary()


class RemoteTransaction:
    """The one transaction that the run of a job may have here."""

    def __init__(self, task: Task[..., Any, Any], holder: Holder) -> None:
        self._task = task
        self._holder = holder
        self._completion: Completion | None = None

    def transact(self, job: ClaimedJob, conn: object, commit: bool) -> JobTransaction:  # noqa: FBT001
        """Make it; called by the handler.

        Raises:
            ConfigError: The app has another database here than in the worker.
        """
        database = self._task.enqueuing.database
        database.ready(make=False)
        if database.store not in _identities:
            _identities[database.store] = database.run(database.store.identity())
        if _identities[database.store] != self._holder.database:
            message = (
                "the app has another database here than in its worker, which holds the job; set "
                f"{VARIABLE} on the nodes, or give the app its URL in its own module"
            )
            raise ConfigError(message)
        if self._completion is None:
            self._completion = Completion(
                job,
                SessionId(self._holder.session),
                self._task,
                moving=_moving,
                doubtful=_nothing,
            )
        return JobTransaction(database, self._completion, conn, commit=commit)

    def told(self) -> Transacted | None:
        """What the worker has to know of it, once the handler has ended."""
        completion = self._completion
        if completion is None:
            return None
        result = completion.settlement and completion.settlement.result
        stage = Stage.NONE if completion.stage is Stage.OPEN else completion.stage
        return Transacted(completion.job.lease, stage.name, result, list(completion.following))


@contextmanager
def _moving() -> Iterator[Callable[[LeaseId, LeaseId], None]]:
    """The worker hears of the new lease with the answer."""
    yield lambda _old, _new: None


def _nothing() -> None:
    """A worker whose job has a lease of which no answer tells looks for it."""
