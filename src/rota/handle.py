"""A job as the one who enqueued it sees it."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rota.args import ResultCodec
from rota.errors import JobFailed, JobNotFinished, JobNotFound
from rota.job import JobId, JobRecord
from rota.placed import Placing
from rota.states import State

if TYPE_CHECKING:
    from rota.app import Rota

T = TypeVar("T")


class JobHandle(Generic[T]):
    """Looks at one job, waits for it, cancels it. Made by `enqueue`, or by `Rota.job`.

    `placing` says what the enqueue did: with a unique key it may have met a job that was there.
    """

    __slots__ = ("_app", "_codec", "id", "placing")

    def __init__(
        self,
        app: "Rota",
        job: JobId,
        codec: ResultCodec | None = None,
        placing: Placing = Placing.CREATED,
    ) -> None:
        self._app = app
        self._codec = codec
        self.id = job
        self.placing = placing

    def __repr__(self) -> str:
        return f"<JobHandle {self.id}>"

    @property
    def duplicate(self) -> bool:
        """Whether nothing was stored, because there is a job of the same key: this one."""
        return self.placing is Placing.SKIPPED

    def record(self) -> JobRecord:
        """Everything that is known of the job.

        Raises:
            JobNotFound: There is no such job: its transaction has not committed yet, it was
                deleted, or its retention is over.
        """
        return _only(self.id, self._app.run(self._app.store.get([self.id])))

    async def arecord(self) -> JobRecord:
        """`record` for async code."""
        return _only(self.id, await self._app.arun(self._app.store.get([self.id])))

    @property
    def status(self) -> State:
        """The state the job is in.

        Raises:
            JobNotFound: There is no such job.
        """
        return self.record().state

    async def astatus(self) -> State:
        """`status` for async code."""
        return (await self.arecord()).state

    def result(self, timeout: float | None = None) -> T:
        """Wait until the job has finished; what its handler returned.

        That is `None` unless the task was declared with `store_result=True`.

        Args:
            timeout: Seconds to wait; `None` waits for ever, 0 only looks.

        Raises:
            JobNotFinished: The time is up.
            JobFailed: The job was discarded or cancelled; the message says why.
            JobNotFound: There is no such job.
        """
        for pause in _pauses(self.id, timeout):
            record = self.record()
            if record.state.finished:
                return self._outcome(record)
            time.sleep(pause)
        raise AssertionError  # pragma: no cover - _pauses ends by raising

    async def aresult(self, timeout: float | None = None) -> T:  # noqa: ASYNC109 - as `result`
        """`result` for async code."""
        import asyncio  # here, as in `in_thread`

        for pause in _pauses(self.id, timeout):
            record = await self.arecord()
            if record.state.finished:
                return self._outcome(record)
            await asyncio.sleep(pause)
        raise AssertionError  # pragma: no cover - _pauses ends by raising

    def cancel(self) -> State:
        """Cancel the job; the state it is in afterwards.

        A waiting job is `cancelled` at once. A running one is asked to stop and is still
        `running`. A finished one stays as it is.

        Raises:
            JobNotFound: There is no such job.
        """
        return _state(self.id, self._app.run(self._app.store.cancel([self.id])))

    async def acancel(self) -> State:
        """`cancel` for async code."""
        return _state(self.id, await self._app.arun(self._app.store.cancel([self.id])))

    def _outcome(self, record: JobRecord) -> T:
        if record.state is not State.COMPLETED:
            why = (
                f": {record.errors[-1].exception}: {record.errors[-1].message}"
                if record.errors
                else ""
            )
            message = f"job {self.id} was {record.state}{why}"
            raise JobFailed(message)
        if record.result is None:
            return None  # type: ignore[return-value]  # the task keeps no results
        codec = self._codec
        if codec is None:
            # Made from an id. Where the task is not known either, the result is what JSON says.
            task = self._app.tasks.get(record.task)
            codec = ResultCodec(Any, record.task) if task is None else task.result_codec
        return codec.decode(record.result)  # type: ignore[return-value]


def _pauses(job: JobId, timeout: float | None) -> Iterator[float]:
    """Growing pauses between looks, at most a quarter of a second; ends when the time is up."""
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = 0.002
    while True:
        left = pause if deadline is None else min(pause, deadline - time.monotonic())
        yield max(0.0, left)
        if deadline is not None and time.monotonic() >= deadline:
            message = f"job {job} has not finished within {timeout} seconds"
            raise JobNotFinished(message)
        pause = min(pause * 1.5, 0.25)


def _only(job: JobId, records: list[JobRecord]) -> JobRecord:
    if not records:
        message = f"there is no job {job}, or not any more"
        raise JobNotFound(message)
    return records[0]


def _state(job: JobId, states: dict[JobId, State]) -> State:
    if job not in states:
        message = f"there is no job {job}, or not any more"
        raise JobNotFound(message)
    return states[job]
