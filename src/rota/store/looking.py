"""Looking on: the part of the seam that says what goes on, and how the database is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from rota.model.job import JobId, SessionId
from rota.store.operation import Operation

if TYPE_CHECKING:
    from rota.model.limit_record import LimitRecord
    from rota.store.health import Facts, HeldFacts, HorizonFacts, LaneFacts, SessionFacts, TaskFacts
    from rota.store.standing import Standing


class Looking(Protocol):
    """What a store tells those who look on. It changes nothing."""

    def lanes(self) -> "Operation[list[LaneFacts]]":
        """Queues and priorities, with how long ago the next job to start was enqueued.

        One without available jobs may be missing.
        """
        ...

    def workers(self) -> "Operation[list[SessionFacts]]":
        """The workers that have not closed their sessions, dead ones too until they are rescued."""
        ...

    def passed_on(self) -> "Operation[list[TaskFacts]]":
        """All available jobs that a worker passed on as it did not know their task, counted."""
        ...

    def limits(self, size: int, after: str = "") -> "Operation[list[LimitRecord]]":
        """The limits whose jobs wait, are held, or have started within the window; up to `size`, by key.

        Those only whose keys come after this one.
        """
        ...

    def held(
        self, limit: int, sessions: Sequence[SessionId] | None = None
    ) -> "Operation[list[HeldFacts]]":
        """The jobs that workers hold, up to `limit` of each, those first that it has had the longest.

        They run, or are about to. `sessions`: of these workers alone.
        """
        ...

    def standing(self, job: JobId) -> "Operation[Standing | None]":
        """Where a job stands that waits for a worker or for its time; `None` for any other."""
        ...

    def horizon(self) -> "Operation[HorizonFacts]":
        """Who keeps old rows from being removed, as far as the backend knows of such a thing."""
        ...

    def product(self) -> Operation[str]:
        """The database's name and version, for people."""
        ...

    def read_only(self) -> Operation[bool]:
        """Whether this role or process can only read here.

        That is so on a standby, for example, or in a file that it may not write.
        """
        ...

    def health(self) -> "Operation[Facts]":
        """Facts about the database's health, at a cost that does not grow with the jobs.

        Works without tables, with those of another version, and with few rights; the facts say
        what could not be seen.
        """
        ...

    def integrity(self) -> Operation[tuple[str, ...] | None]:
        """Read everything; the faults that were found. `None` where the backend has no such check."""
        ...

    def hears(self, timeout: float) -> bool | None:
        """Whether a notification comes back through new connections within so many seconds.

        None where the backend does not rely on any.
        """
        ...
