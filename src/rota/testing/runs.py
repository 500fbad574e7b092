"""What came of the attempts that a test has made."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from rota.model.job import ClaimedJob, Following, JobId
from rota.model.settlement import Settlement
from rota.model.states import Move


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt of one job.

    Attributes:
        job: The job's id.
        task: The task's name.
        args: Its args, as the handler got them.
        attempt: Which attempt it was, from 1.
        move: What followed: `complete`, `retry`, `discard`, `snooze`, `again`, `cancel`, `release`.
        result: What the handler returned; of a task with `store_result` as it was stored and read
            again.
        error: What the handler raised, including an outcome such as `Snooze`.
        delay: Seconds until the job runs again, if it does.
        successors: The ids of the jobs that were enqueued because it has ended.
    """

    job: JobId
    task: str
    args: Mapping[str, Any]
    attempt: int
    move: Move
    result: Any = None
    error: BaseException | None = None
    delay: float = 0.0
    successors: tuple[JobId, ...] = ()

    @property
    def completed(self) -> bool:
        """Whether the job ended well."""
        return self.move is Move.COMPLETE

    @property
    def failed(self) -> bool:
        """Whether the attempt failed, whether or not another follows."""
        return self.move in {Move.RETRY, Move.DISCARD}


class Runs(Sequence[Run]):
    """The attempts of a drain, in their order, and how they ended."""

    def __init__(self, runs: Sequence[Run] = ()) -> None:
        self._runs = tuple(runs)

    @overload
    def __getitem__(self, at: int) -> Run: ...
    @overload
    def __getitem__(self, at: slice) -> "Runs": ...
    def __getitem__(self, at: int | slice) -> "Run | Runs":
        return Runs(self._runs[at]) if isinstance(at, slice) else self._runs[at]

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __repr__(self) -> str:
        return f"Runs({', '.join(f'{run.task} #{run.job}: {run.move}' for run in self._runs)})"

    def of(self, task: Any) -> "Runs":
        """Those of one task, given itself or by its name."""
        # Django's tasks have names, too, which are not those of their jobs.
        name = getattr(task, "module_path", getattr(task, "name", task))
        return Runs([run for run in self._runs if run.task == name])

    @property
    def completed(self) -> int:
        """Jobs that ended well."""
        return self._count(Move.COMPLETE)

    @property
    def retried(self) -> int:
        """Attempts that failed and are followed by another one."""
        return self._count(Move.RETRY)

    @property
    def discarded(self) -> int:
        """Jobs that were given up."""
        return self._count(Move.DISCARD)

    @property
    def snoozed(self) -> int:
        """Attempts that ended with `Snooze`."""
        return self._count(Move.SNOOZE)

    @property
    def came_round(self) -> int:
        """Rounds that ended with `Again`."""
        return self._count(Move.AGAIN)

    def _count(self, move: Move) -> int:
        return sum(run.move is move for run in self._runs)


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended, before it is settled."""

    job: ClaimedJob
    settlement: Settlement
    value: Any = None
    error: BaseException | None = None
    settled: bool = False
    following: Sequence[Following] = ()
