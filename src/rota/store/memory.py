"""The operations on what jobs remember across their runs, as all backends have them.

Whoever appends to a job's memory holds the job's lease, and keeps it until the commit: what a run
says that has lost the job is refused, and what was said is there before the next run begins.
"""

from collections.abc import Sequence
from typing import Protocol

from rota.model.job import JobId
from rota.model.memory import Answer, Holder, Remembered
from rota.model.states import State
from rota.store.operation import Operation


class Memory(Protocol):
    """What a store does with memory.

    Where a method has a `holder`, `False` or `None` says that it does not hold the job any more.
    """

    def load(self, jobs: Sequence[JobId]) -> Operation[dict[JobId, list[Remembered]]]:
        """What these jobs remember, oldest first."""
        ...

    def remember(self, holder: Holder, name: str, value: str) -> Operation[bool]:
        """Append the result of a step; it is on disk when this returns."""
        ...

    def remember_tagged(
        self, holder: Holder, name: str, value: str, before: int | None
    ) -> Operation[bool]:
        """`remember` in the caller's transaction that was tagged, see `Store.settle_tagged`.

        Raises:
            TransactionEnded: It was committed or rolled back in the meantime. Nothing was written.
        """
        ...

    def answer(
        self, holder: Holder, name: str, signal: str, *, over: bool
    ) -> Operation[Answer | None]:
        """End a wait if a signal has come for it, else if its time is `over`."""
        ...

    def signal(
        self, job: JobId, name: str, value: str, told: str | None
    ) -> Operation[State | None]:
        """Send a signal to a job that has not ended; its state, `None` where there is no such job.

        A finished one takes none. Of several with the same `told` one counts.
        """
        ...
