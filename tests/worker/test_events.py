"""What a worker tells its subscribers, its signs of life, and what it does without them."""

import asyncio
import queue
import threading
import time
from typing import Any, NoReturn

import pytest

from rota import ArgsError, Limit, Rota, SchemaMissing, State, StoreUnavailable, Task
from rota.dispatch import Events
from rota.events import (
    Event,
    JobCompleted,
    JobReleased,
    JobsClaimed,
    JobsEnqueued,
    JobSettled,
    JobsStaged,
    JobStarted,
    LeasesLost,
    LimitsReached,
    SessionLost,
    SessionRescued,
    TaskUnknown,
    WorkerStarted,
    WorkerStopped,
)
from rota.model.job import ClaimedJob, JobSpec, Order, SessionId
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store.operation import Operation
from rota.worker import Worker
from tests.fixtures.workers import drained, until, working


def heard(app: Rota, *kinds: type[Event]) -> list[Event]:
    """All events of these kinds, as they come."""
    events: list[Event] = []
    for kind in kinds:
        app.events.subscribe(kind, events.append)
    return events


def test_the_life_of_a_job(app: Rota) -> None:
    """Worker started, job started, job settled, worker stopped: in this order."""
    events = heard(app, WorkerStarted, JobStarted, JobSettled, WorkerStopped)

    @app.task(name="job", queue="mail")
    async def job() -> None: ...

    handle = job.enqueue()
    drained(app)
    assert [type(event) for event in events] == [
        WorkerStarted, JobStarted, JobCompleted, WorkerStopped,
    ]  # fmt: skip
    begun, started, settled, stopped = events
    assert isinstance(begun, WorkerStarted)
    assert isinstance(started, JobStarted)
    assert isinstance(settled, JobSettled)
    assert isinstance(stopped, WorkerStopped)
    assert begun.queues == ("mail",)
    assert started.job.id == settled.job.id == handle.id
    assert settled.settlement.move is Move.COMPLETE
    assert (stopped.session, stopped.released) == (begun.session, 0)


def test_moves(app: Rota) -> None:
    """Each run ends with the move that is written about it."""
    events = heard(app, JobSettled, TaskUnknown)

    @app.task(name="broken", retry=lambda _attempt, _error: 0, max_attempts=2)
    async def broken() -> None:
        raise ValueError

    handle = broken.enqueue()
    app.database.run(app.database.store.enqueue(Order(JobSpec(task="not.here"), ["{}"])))
    with working(app):
        until(lambda: handle.status is State.DISCARDED)
        until(lambda: len(events) >= 4)
    assert sorted(type(event).__name__ for event in events) == [
        "JobDiscarded", "JobReleased", "JobRetried", "TaskUnknown",
    ]  # fmt: skip
    moves = [event.settlement.move for event in events if isinstance(event, JobSettled)]
    assert sorted(moves) == sorted([Move.RETRY, Move.DISCARD, Move.RELEASE])


def test_a_subscriber_that_fails(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    """A subscriber that raises is reported, and neither the work nor other subscribers stop."""

    def broken(event: Event) -> None:
        raise LookupError(str(event))

    for kind in (WorkerStarted, JobStarted, JobSettled, WorkerStopped):
        app.events.subscribe(kind, broken)
    events = heard(app, JobSettled)

    @app.task(name="job", store_result=True)
    async def job() -> int:
        return 1

    handles = [job.enqueue() for _ in range(5)]
    drained(app)
    assert [handle.result(timeout=0) for handle in handles] == [1] * 5
    assert len(events) == 5
    assert "a subscriber to JobCompleted failed" in caplog.text


def test_on(app: Rota) -> None:
    """`@rota.on(…)` subscribes a function and leaves it what it is."""
    seen: list[JobSettled] = []

    @app.on(JobSettled)
    def note(event: JobSettled) -> None:
        seen.append(event)

    @app.task(name="job")
    async def job() -> None: ...

    job.enqueue()
    drained(app)
    assert len(seen) == 1
    note(seen[0])
    assert len(seen) == 2


def test_what_is_enqueued(app: Rota) -> None:
    """Each enqueue is one event, with the ids; what is refused is none."""

    @app.task(name="job", queue="mail")
    def job(number: int) -> None: ...

    with app.events.collect(JobsEnqueued) as seen:
        one = job.enqueue(1)
        many = job.using(queue="slow", delay=60).enqueue_many([(2,), (3,)])
        with pytest.raises(ArgsError):
            job.enqueue("x")  # type: ignore[arg-type]
    assert seen == [
        JobsEnqueued(job.name, "mail", (one.id,)),
        JobsEnqueued(job.name, "slow", tuple(many)),
    ]


@pytest.mark.asyncio
async def test_what_is_enqueued_in_a_transaction(app: Rota) -> None:
    """An enqueue in a transaction is told when it is stored, before anybody knows how that ends."""

    @app.task(name="job")
    def job(number: int) -> None: ...

    async def rolled_back() -> None:
        async with app.transaction() as tx:
            await job.using(conn=tx).aenqueue(1)
            job.using(conn=tx).enqueue(2)
            assert len(seen) == 2
            raise ZeroDivisionError

    with app.events.collect(JobsEnqueued) as seen:
        with pytest.raises(ZeroDivisionError):
            await rolled_back()
        handle = await job.aenqueue(3)
    assert seen[-1].jobs == (handle.id,)
    assert len(seen) == 3


def test_what_is_staged(app: Rota) -> None:
    """Jobs whose time has come are told when they become available."""

    @app.task(name="job")
    async def job(number: int) -> None: ...

    job.using(delay=0.01).enqueue_many([(n,) for n in range(5)])
    with app.events.collect(JobsStaged) as seen:
        drained(app)
    assert sum(event.count for event in seen) == 5


def test_a_limit_that_is_reached(app: Rota) -> None:
    """Whenever a claim takes a limit's last place this is told, once for each."""

    @app.task(name="job", limit=Limit("door:{door}", running=2))
    async def job(door: str) -> None: ...

    job.enqueue_many([("a",), ("b",), ("a",), ("a",)])
    with app.events.collect(LimitsReached) as seen:
        drained(app)
    assert seen == [LimitsReached(("door:a",))]


def test_what_a_stop_releases(app: Rota) -> None:
    """Jobs that a worker gives back without having started them are told, too."""

    @app.task(name="job", batch=10, within=300)
    def job(numbers: list[int]) -> None: ...

    ids = job.enqueue_many([(n,) for n in range(4)])
    with (
        app.events.collect(JobSettled) as back,
        app.events.collect(WorkerStopped) as stopped,
        working(app) as worker,
    ):
        until(lambda: {app.job(one).status for one in ids} == {State.RUNNING})
        worker.stop()
        until(lambda: stopped)
    assert [(type(one), one.job.id) for one in back] == [(JobReleased, one) for one in ids]
    assert stopped[0].released == 4


def test_completed_jobs_cost_nothing_where_nobody_listens(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A completed job does not even ask who listens to its end; a failed one does."""
    asked: list[Move] = []
    made = Events.settled

    def spy(self: Events, job: ClaimedJob, settlement: Settlement) -> None:
        asked.append(settlement.move)
        made(self, job, settlement)

    @app.task(name="job", max_attempts=1)
    async def job(number: int) -> None:
        if number == 7:
            raise ValueError

    job.enqueue_many([(n,) for n in range(20)])
    monkeypatch.setattr(Events, "settled", spy)
    drained(app)
    assert asked == [Move.DISCARD]


def test_everything(app: Rota) -> None:
    """Who subscribes to `Event` hears all of it, in order."""

    @app.task(name="job", max_attempts=1)
    async def job(number: int) -> None:
        if number:
            raise ValueError

    with app.events.collect(Event) as seen:
        job.enqueue_many([(0,), (1,)])
        drained(app)
    names = [type(event).__name__ for event in seen]
    assert [name for name in names if name not in {"JobsClaimed", "SettlementsWritten", "Tidied"}] == [
        "JobsEnqueued", "WorkerStarted", "JobStarted", "JobCompleted", "JobStarted",
        "JobDiscarded", "WorkerStopping", "WorkerStopped",
    ]  # fmt: skip
    assert {"JobsClaimed", "SettlementsWritten"} <= set(names)


# Sessions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["asleep", "busy"])
def test_a_handler_that_blocks_the_loop(app: Rota, how: str) -> None:
    """A handler that blocks the event loop for longer than a session lives does not lose it."""
    events = heard(app, SessionLost, LeasesLost, SessionRescued)

    @app.task(name="rude", store_result=True)
    async def rude() -> int:
        deadline = time.monotonic() + 2.5
        while time.monotonic() < deadline:
            if how == "asleep":
                time.sleep(0.1)  # noqa: ASYNC251 - that is the point
        return 1

    handle = rude.enqueue()
    with Rota(app.url) as other:
        other.task(name="nothing")(lambda: None)
        lost = heard(other, SessionRescued)
        # The other worker would take the job over if it could.
        with working(app, session_timeout=1.0), working(other, session_timeout=1.0):
            assert handle.result(timeout=20) == 1
    assert handle.record().attempt == 1
    assert events == []
    assert lost == []


def test_a_lost_session(app: Rota) -> None:
    """A worker whose session was ended stops its jobs, says so, and goes on with a new one."""
    events = heard(app, SessionLost)
    began, stopped = threading.Event(), threading.Event()

    @app.task(name="job", store_result=True)
    async def job(ctx_is_first: bool) -> int:  # noqa: FBT001 - an arg
        if not ctx_is_first:
            return 2
        if not began.is_set():
            began.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                stopped.set()
                raise
        return 1

    started = heard(app, WorkerStarted)
    handle = job.enqueue(ctx_is_first=True)
    with working(app, session_timeout=1.0):
        assert began.wait(20)
        [start] = started
        assert isinstance(start, WorkerStarted)
        app.database.run(app.database.store.close_session(start.session))
        assert stopped.wait(20)
        assert handle.result(timeout=20) == 1
        assert job.enqueue(ctx_is_first=False).result(timeout=20) == 2
    assert [type(event) for event in events] == [SessionLost]


def test_a_settlement_whose_answer_is_lost(app: Rota) -> None:
    """It is sent again; what was written the first time is no lost lease."""
    lost = heard(app, LeasesLost)
    connection = type(app.database.store.connect())
    real = connection.run
    sent: list[str] = []

    def run(self: Any, operation: Operation[Any]) -> Any:
        found = real(self, operation)
        if operation.name == "settle":
            sent.append("settle")
            if len(sent) == 1:
                message = "the answer is lost"
                raise StoreUnavailable(message)
        return found

    @app.task(name="job")
    async def job() -> None:
        pass

    handle = job.enqueue()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "run", run)
        with working(app):
            until(lambda: len(sent) == 2)
    assert handle.status is State.COMPLETED
    assert lost == []


def test_signs_of_life_that_do_not_get_through(app: Rota) -> None:
    """When its time is up a worker stops its jobs by itself: others may run them by then."""
    events = heard(app, SessionLost)
    began, stopped = threading.Event(), threading.Event()

    @app.task(name="job", store_result=True)
    async def job() -> int:
        if not began.is_set():
            began.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                stopped.set()
                raise
        return 1

    def away(session: SessionId) -> NoReturn:
        message = f"session {session} cannot be renewed"
        raise StoreUnavailable(message)

    handle = job.enqueue()
    with working(app, session_timeout=1.0):
        assert began.wait(20)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(app.database.store, "renew", away)
            assert stopped.wait(20)
        assert handle.result(timeout=20) == 1
    assert isinstance(events[0], SessionLost)


@pytest.mark.parametrize("kind", ["single", "batch"])
def test_a_job_that_comes_back_to_its_thread(app: Rota, kind: str) -> None:
    """After a lost session a worker may get a job again while its thread is still at it."""
    began: queue.SimpleQueue[threading.Event] = queue.SimpleQueue()
    events = heard(app, WorkerStarted)

    def work(numbers: list[int]) -> None:
        del numbers
        go = threading.Event()
        began.put(go)
        assert go.wait(20)

    options: dict[str, Any] = {"batch": 2, "within": 300} if kind == "batch" else {}
    task: Task[..., Any, Any] = app.task(name="job", **options)(work)
    args: Any = [([1],)] if kind == "single" else [(1,), (2,)]
    handles = [app.job(job) for job in task.enqueue_many(args)]
    with working(app, session_timeout=1.0):
        first = began.get(timeout=20)
        [start] = events
        assert isinstance(start, WorkerStarted)
        app.database.run(app.database.store.close_session(start.session))
        second = began.get(timeout=20)
        with app.events.collect(LeasesLost) as lost:
            first.set()
            until(lambda: sum(len(event.jobs) for event in lost) == len(handles))
        assert {handle.status for handle in handles} == {State.RUNNING}
        second.set()
        for handle in handles:
            handle.result(timeout=20)


def test_a_dead_worker_is_noticed(app: Rota) -> None:
    """The jobs of a worker that is gone without a word are taken over, and subscribers hear it."""
    from rota.model.job import SessionInfo

    events = heard(app, SessionRescued)

    @app.task(name="job", store_result=True)
    async def job() -> int:
        return 1

    handle = job.enqueue()
    info = SessionInfo(host="beta", pid=1, queues=("default",), timeout=1.0)
    dead = app.database.run(app.database.store.open_session(info))
    assert len(app.database.run(app.database.store.claim(dead, ["default"], 10))) == 1
    with working(app, session_timeout=1.0):
        assert handle.result(timeout=20) == 1
    assert handle.record().attempt == 2
    [event] = events
    assert isinstance(event, SessionRescued)
    assert event.rescue.session == dead
    assert event.rescue.available == (handle.id,)


def test_without_tables(postgres_url: str) -> None:
    """A worker on a PostgreSQL database without Rota's tables says what to do."""
    with Rota(postgres_url) as app:
        app.task(name="job")(lambda: None)
        with pytest.raises(SchemaMissing, match="rota migrate"):
            asyncio.run(Worker(app).arun(signals=False))


def test_claims_are_timed(app: Rota) -> None:
    """Each claim says how many jobs it gave and how long it took; an empty one says so too."""
    events = heard(app, JobsClaimed)

    @app.task(name="job")
    async def job(n: int) -> None: ...

    job.enqueue_many([(n,) for n in range(3)])
    drained(app)
    claims = [event for event in events if isinstance(event, JobsClaimed)]
    assert sum(claim.count for claim in claims) == 3
    assert claims[-1].count == 0
    assert all(0 < claim.seconds < 20 for claim in claims)
