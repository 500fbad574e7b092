"""A handler that stops here, to be run again later: how a job sleeps without a slot."""

from collections.abc import Callable

from rota.model.headers import node_of
from rota.model.job import ClaimedJob
from rota.model.memory import Pause
from rota.model.settlement import Settlement
from rota.model.states import Move


class Suspended(BaseException):
    """Ends the run of a handler that sleeps or waits; after its end, `pauses` gives all the pauses.

    No `Exception`: a handler that catches its own errors does not mean this.
    """

    def __init__(self, pauses: Callable[[], tuple[Pause, ...]]) -> None:
        self._pauses = pauses
        super().__init__("the job sleeps, and will be run again")

    def settlement(self, job: ClaimedJob) -> Settlement:
        """What is written: the job snoozes until the first of its pauses is over."""
        pauses = self._pauses()
        after = min((pause.seconds for pause in pauses), default=0.0)
        return Settlement(
            job.id, job.lease, Move.SNOOZE, after, unique_key=job.unique_key, pauses=pauses,
            node=node_of(job.headers),
        )  # fmt: skip


def suspended(error: BaseException) -> Suspended | None:
    """What suspends the job, if that is all that was raised: in a task group, by several tasks."""
    if isinstance(error, Suspended):
        return error
    if isinstance(error, BaseExceptionGroup):
        sleeping, others = error.split(Suspended)
        if others is None and sleeping is not None:
            first: BaseException = sleeping
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[-1]
            return first if isinstance(first, Suspended) else None
    return None
