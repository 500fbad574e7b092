"""A handle on a job: look at it, wait for it, cancel it."""

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rota.app.queues import Queues
from rota.args import ResultCodec
from rota.database.database import Database
from rota.database.waiting import not_found
from rota.errors import JobFailed, JobNotFinished
from rota.model.enqueued import Placing
from rota.model.job import JobId, JobRecord, possible
from rota.model.notes import ToldNote, with_notes
from rota.model.states import State
from rota.store.execute import adrive, drive
from rota.store.operation import Operation

if TYPE_CHECKING:
    from rota.app.changes import Changes
    from rota.model.memory import Remembered, StepRecord

T = TypeVar("T")

FindCodec = Callable[[str], ResultCodec]
"""Finds what reads the results of the task of that name, for a handle that was made from an id."""


class JobHandle(Generic[T]):
    """Looks at one job, waits for it, cancels it. Made by `enqueue`, or by `Rota.job`.

    `placing` says what the enqueue did: with a unique key it may have found an existing job. In an
    app with several databases, `shard` names the one that has the job; else it is `None`.
    """

    __slots__ = ("_codec", "_database", "_queues", "id", "placing", "shard")

    def __init__(
        self,
        database: Database,
        queues: Queues,
        job: JobId,
        codec: ResultCodec | FindCodec,
        placing: Placing = Placing.CREATED,
        *,
        shard: str | None = None,
    ) -> None:
        self._database = database
        self._queues = queues
        self._codec = codec
        self.id = job
        self.placing = placing
        self.shard = shard

    def __repr__(self) -> str:
        return f"<JobHandle {self.reference}>"

    @property
    def reference(self) -> str:
        """What the app's `job` finds it by: `123`, or `eu:123` in an app with several databases."""
        return str(self.id) if self.shard is None else f"{self.shard}:{self.id}"

    @property
    def duplicate(self) -> bool:
        """Whether nothing was stored because there is already a job with the same key: this one."""
        return self.placing is Placing.SKIPPED

    def record(self) -> JobRecord:
        """Everything that is known about the job.

        Raises:
            JobNotFound: There is no such job: its transaction has not committed yet, it was
                deleted, or its retention is over.
        """
        record = self._look()
        return with_notes(record, self._database.run(self._notes()).get(self.id, ()))

    async def arecord(self) -> JobRecord:
        """`record` for async code."""
        record = _only(self.id, await self._database.arun(self._looking()))
        return with_notes(record, (await self._database.arun(self._notes())).get(self.id, ()))

    @property
    def status(self) -> State:
        """The state the job is in.

        Raises:
            JobNotFound: There is no such job.
        """
        return self._look().state

    async def astatus(self) -> State:
        """`status` for async code."""
        return _only(self.id, await self._database.arun(self._looking())).state

    def result(self, timeout: float | None = None) -> T:
        """Wait until the job has finished; returns what its handler returned.

        That is `None` unless the task was declared with `store_result=True`. In async code
        `await handle` is the same as `await handle.aresult()`.

        Args:
            timeout: Seconds to wait; `None` waits forever, 0 only looks.

        Raises:
            JobNotFinished: The time is up.
            JobFailed: The job was discarded or cancelled; the message says why.
            JobNotFound: There is no such job.
            StoreUnavailable: The database was away for ten seconds.
        """
        return self._outcome(self._ended(timeout))

    async def aresult(self, timeout: float | None = None) -> T:  # noqa: ASYNC109 - as `result`
        """`result` for async code."""
        return self._outcome(await self._aended(timeout))

    def __await__(self) -> Generator[Any, Any, T]:
        """`await handle` gives the result."""
        return self.aresult().__await__()

    def wait(self, timeout: float | None = None) -> JobRecord:
        """Wait until the job has finished, well or not; returns its record.

        Args:
            timeout: Seconds to wait; `None` waits forever, 0 only looks.

        Raises:
            JobNotFinished: The time is up.
            JobNotFound: There is no such job, or it went away: it was deleted, or its retention
                is 0.
            StoreUnavailable: The database was away for ten seconds.
        """
        record = self._ended(timeout)
        return with_notes(record, self._database.run(self._notes()).get(self.id, ()))

    async def await_finished(self, timeout: float | None = None) -> JobRecord:  # noqa: ASYNC109 - as `wait`
        """`wait` for async code, which cannot be called `await`."""
        record = await self._aended(timeout)
        return with_notes(record, (await self._database.arun(self._notes())).get(self.id, ()))

    def _ended(self, timeout: float | None) -> JobRecord:
        record = self._look()
        if record.state.finished:
            return record
        if timeout is not None and timeout <= 0:
            raise _not_finished(self.id, timeout)
        waiting = self._database.waiting
        wait = waiting.begin(self.id)
        try:
            return wait.ended.result(timeout)
        except TimeoutError as error:
            raise _not_finished(self.id, timeout) from error
        finally:
            waiting.end(wait)

    async def _aended(self, timeout: float | None) -> JobRecord:  # noqa: ASYNC109 - as `wait`
        import asyncio  # here, as in `in_thread`

        record = _only(self.id, await self._database.arun(self._looking()))
        if record.state.finished:
            return record
        if timeout is not None and timeout <= 0:
            raise _not_finished(self.id, timeout)
        waiting = self._database.waiting
        wait = waiting.begin(self.id)
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.wrap_future(wait.ended)
        except TimeoutError as error:
            raise _not_finished(self.id, timeout) from error
        finally:
            waiting.end(wait)

    def changes(self, *, after: str | None = None) -> "Changes":
        """Follow the job with `for` or `async for`: how it is now, each change, its end.

        The last `Change` has the finished record. Changes that come faster than the loop takes them
        are combined. Leave the loop whenever you like: nothing is left behind.

        Args:
            after: The `id` of the last change that was seen, as from a `Last-Event-ID`: log lines
                up to then are not repeated.

        Raises:
            JobNotFound: There is no such job, or it went away: it was deleted, or its retention
                is 0.
            StoreUnavailable: The database was away for ten seconds; the next step tries again.
            ConfigError: `after` is not the id of a change.
        """
        from rota.app.changes import Changes  # here: most programs follow no job

        return Changes(self._database, _possible(self.id), after)

    def signal(
        self,
        name: str,
        payload: object = None,
        *,
        id: str | None = None,  # noqa: A002 - what it is
        conn: object = None,
    ) -> None:
        """Send a signal to the job, which waits for it now or later: see `Context.wait_for`.

        Args:
            name: The name that the job waits for.
            payload: What `wait_for` returns: any value that JSON has.
            id: Of several signals with the same name and id, only one counts.
            conn: Your own connection or session: the signal is there when you commit, and a job
                that waits for it notices within a worker's `poll`.

        Raises:
            JobNotFound: There is no such job.
            JobEnded: The job has ended.
            ArgsError: The payload cannot be stored, or is larger than 1 MB.
            ConfigError: The name or the id cannot be used.
        """
        from rota.app.signals import signalling  # here: most programs send none

        conn = self._database.joining(conn)
        steps = signalling(self._database, self.id, name, payload, id, own=conn is None)
        drive(steps, partial(self._database.run, conn=conn))

    async def asignal(
        self,
        name: str,
        payload: object = None,
        *,
        id: str | None = None,  # noqa: A002 - as in `signal`
        conn: object = None,
    ) -> None:
        """`signal` for async code."""
        from rota.app.signals import signalling  # here, as in `signal`

        conn = await self._database.ajoining(conn)
        steps = signalling(self._database, self.id, name, payload, id, own=conn is None)
        await adrive(steps, partial(self._database.arun, conn=conn))

    def steps(self) -> "list[StepRecord]":
        """The job's steps, sleeps and waits, and the signals that it has not taken, oldest first."""
        from rota.model.memory import records  # here: few jobs have steps

        conn = self._database.joining(None)
        return records(self._database.run(self._remembered(), conn).get(self.id, ()))

    async def asteps(self) -> "list[StepRecord]":
        """`steps` for async code."""
        from rota.model.memory import records  # here, as in `steps`

        conn = await self._database.ajoining(None)
        return records((await self._database.arun(self._remembered(), conn)).get(self.id, ()))

    def _remembered(self) -> "Operation[dict[JobId, list[Remembered]]]":
        return self._database.store.memory.load([_possible(self.id)])

    def cancel(self) -> State:
        """Cancel the job; returns its state afterwards.

        A waiting job is `cancelled` at once. A running one is asked to stop and is still
        `running`. A finished one stays as it is.

        Raises:
            JobNotFound: There is no such job.
        """
        return _state(self.id, self._database.run(self._cancelling()))

    async def acancel(self) -> State:
        """`cancel` for async code."""
        return _state(self.id, await self._database.arun(self._cancelling()))

    def _cancelling(self) -> Operation[dict[JobId, State]]:
        return self._database.store.cancel([_possible(self.id)], self._queues.cancelled())

    def _look(self) -> JobRecord:
        return _only(self.id, self._database.run(self._looking()))

    def _looking(self) -> Operation[list[JobRecord]]:
        return self._database.store.get([_possible(self.id)])

    def _notes(self) -> Operation[dict[JobId, list[ToldNote]]]:
        return self._database.store.notes([self.id])

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
        if not isinstance(codec, ResultCodec):
            codec = codec(record.task)
        return codec.decode(record.result)  # type: ignore[return-value]


def _not_finished(job: JobId, timeout: float | None) -> JobNotFinished:
    return JobNotFinished(f"job {job} has not finished within {timeout} seconds")


def _possible(job: JobId) -> JobId:
    """The id, if a job can have it: a database would fail at some others, and take `True` for 1."""
    if not possible(job):
        raise not_found(job)
    return job


def _only(job: JobId, records: list[JobRecord]) -> JobRecord:
    if not records:
        raise not_found(job)
    return records[0]


def _state(job: JobId, states: dict[JobId, State]) -> State:
    if job not in states:
        raise not_found(job)
    return states[job]
