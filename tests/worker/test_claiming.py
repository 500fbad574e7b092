"""Which jobs a worker takes, in what order, and how many."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, NoReturn

import psycopg
import pytest

from rota import Rota, State
from rota.app.job_transaction import Completion
from rota.config import WorkerConfig
from rota.errors import StoreUnavailable
from rota.events import JobsClaimed
from rota.model.job import ClaimedJob, JobId, JobSpec, LeaseId, Order, SessionId, SessionInfo
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store.migrate import migrate
from rota.store.operation import Operation
from rota.store.postgres.connection import PostgresConnection
from rota.worker.claim import Claimer, Measured
from rota.worker.leases import Leases
from rota.worker.session import Session
from rota.worker.slots import Slots
from rota.worker.switchboard import Switchboard, on_loop
from tests.fixtures.workers import (
    LONG,
    drained,
    let_them_sleep,
    records,
    until,
    until_it_sleeps,
    working,
)

pytestmark = pytest.mark.both


class Gauge:
    """Counts how many run at once."""

    def __init__(self) -> None:
        self.now = self.most = self.total = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.total += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Set at the end of the test at the latest, so that no handler waits for ever."""
    go = threading.Event()
    yield go
    go.set()


@pytest.mark.parametrize("executor", ["loop", "thread"])
def test_concurrency(app: Rota, executor: str) -> None:
    """Never do more jobs run than the concurrency allows, and all of it is used."""
    gauge = Gauge()

    @app.task(name="loop")
    async def on_loop() -> None:
        with gauge:
            for _ in range(5):
                await asyncio.sleep(0.002)

    @app.task(name="thread")
    def in_thread() -> None:
        with gauge:
            time.sleep(0.005)  # work, so that others can overlap

    app.tasks[executor].enqueue_many([()] * 60)
    drained(app, concurrency=3)
    assert gauge.total == 60
    assert gauge.most == 3


def test_one_at_a_time(app: Rota) -> None:
    """With a concurrency of one, jobs run one after another in the order of their enqueue."""
    gauge = Gauge()
    ran: list[int] = []

    @app.task(name="job")
    async def job(number: int) -> None:
        with gauge:
            await asyncio.sleep(0.001)
            ran.append(number)

    job.enqueue_many([(number,) for number in range(30)])
    for number in range(30, 35):
        job.enqueue(number)
    drained(app, concurrency=1)
    assert gauge.most == 1
    assert ran == list(range(35))


def test_queue_selection(app: Rota) -> None:
    """A worker takes jobs of its queues only."""
    ran: list[str] = []

    @app.task(name="job")
    async def job(queue: str) -> None:
        ran.append(queue)

    for queue in ("mail", "default", "reports", "mail"):
        job.using(queue=queue).enqueue(queue)
    drained(app, queues=("mail", "reports"))
    assert sorted(ran) == ["mail", "mail", "reports"]
    drained(app)
    assert sorted(ran) == ["default", "mail", "mail", "reports"]


def test_the_queues_of_the_tasks(app: Rota) -> None:
    """Without a selection a worker serves the queues of the app's tasks."""
    ran: list[str] = []

    @app.task(name="mail", queue="mail")
    async def mail() -> None:
        ran.append("mail")

    @app.task(name="report", queue="reports")
    async def report() -> None:
        ran.append("report")

    mail.enqueue()
    report.enqueue()
    drained(app)
    assert sorted(ran) == ["mail", "report"]


def test_priorities(app: Rota) -> None:
    """Smaller priorities start first, within one queue and over several."""
    ran: list[int] = []

    @app.task(name="job")
    async def job(priority: int) -> None:
        ran.append(priority)

    for number, priority in enumerate((5, 0, -3, 7, 0, -9)):
        queue = ("a", "b")[number % 2]
        job.using(priority=priority, queue=queue).enqueue(priority)
    drained(app, concurrency=1, queues=("a", "b"))
    assert ran == [-9, -3, 0, 0, 5, 7]


def test_a_paused_queue(app: Rota) -> None:
    """A paused queue gives nothing until it is resumed, and other queues go on."""

    @app.task(name="job", store_result=True)
    async def job(number: int) -> int:
        return number

    app.database.run(app.database.store.pause("slow"))
    paused = job.using(queue="slow").enqueue(1)
    with working(app, queues=("slow", "default")):
        for number in range(3):
            assert job.enqueue(number).result(timeout=20) == number
        assert paused.status is State.AVAILABLE
        app.database.run(app.database.store.resume("slow"))
        assert paused.result(timeout=20) == 1


def test_a_worker_with_slow_jobs_hoards_none(app: Rota, held: threading.Event) -> None:
    """A worker whose jobs are slow holds as many as it runs, and hardly any more."""
    looks: list[int] = []

    @app.task(name="slow")
    def slow() -> None:
        held.wait(0.05)

    def looked() -> bool:
        looks.append(len(records(app, State.RUNNING)))
        return len(looks) >= 15 and max(looks) >= 2

    slow.enqueue_many([()] * 1000)
    with working(app, concurrency=2) as worker:
        until(lambda: len(records(app, State.COMPLETED)) >= 10)
        until(looked)
        worker.stop()
    # Two run at a time, and what has ended waits for a moment until it is written. On a machine
    # with other things to do that moment is longer, and many seem to end at once.
    assert max(looks) <= 20
    assert records(app, State.RUNNING) == []


def test_jobs_that_end_together_are_not_quick(app: Rota) -> None:
    """They may have run for hours beside each other; those that follow them have not."""

    async def together() -> None:
        with claiming(app, ignore) as (claimer, _):
            for ended, wanted in (3, 3), (8, 3 + (8 - 3) // 2):
                claimer._claimed += ended
                claimer.free(ended)
                claimer._measured = claimer._measured._replace(at=time.monotonic() - 0.1, running=3)
                claimer._window = 0.1
                assert claimer._want() == wanted
            claimer.stop()

    asyncio.run(together())


@pytest.mark.parametrize(
    ("took", "limited", "more"),
    [(0.001, False, 1), (0.05, False, 2), (9.0, False, 4), (9.0, True, 1)],
)
def test_claims_that_wait(app: Rota, took: float, limited: bool, more: int) -> None:  # noqa: FBT001
    """Where claims take long, each is for more jobs; not where jobs have limits, which count claims."""

    async def waited() -> None:
        with claiming(app, ignore) as (claimer, _):
            if limited:
                job = ClaimedJob(
                    JobId(1), LeaseId(1), "job", "{}", "default", 0, 1, 1, None, 0.0, limited=True
                )
                claimer._leases.add(SessionId(1), [job])
            claimer._claimed += 6
            claimer.free(6)
            claimer._took = [took]
            claimer._measured = Measured(time.monotonic() - 0.1, 0, 3)
            claimer._window = 0.1
            assert claimer._want() == 3 + more
            claimer.stop()

    asyncio.run(waited())


@pytest.mark.parametrize(
    ("others", "wanted"), [((), 3 + 1), ((0,), 3 + 1), ((1,), 2 + 2), ((1, 0), 2 + 2)]
)
def test_claims_beside_other_databases(app: Rota, others: tuple[int, ...], wanted: int) -> None:
    """A worker of several busy databases is slower at each, and claims as far ahead as for one."""

    async def beside() -> None:
        with claiming(app, ignore) as (claimer, _):
            slots = Slots(3)
            claimer._share = slots.share()
            for held in others:
                slots.share().held = partial(int, held)
            claimer._claimed += 6
            claimer.free(6)
            claimer._took = [0.001]
            claimer._measured = Measured(time.monotonic() - 0.1, 0, 3)
            claimer._window = 0.1
            assert claimer._want() == wanted
            claimer.stop()

    asyncio.run(beside())


def test_quick_jobs_are_claimed_in_batches(app: Rota) -> None:
    """A worker with quick jobs claims many at once, up to its prefetch."""
    sizes: list[int] = []
    app.events.subscribe(JobsClaimed, lambda event: sizes.append(event.count))

    @app.task(name="quick")
    async def quick() -> None: ...

    quick.enqueue_many([()] * 3000)
    drained(app, concurrency=4, prefetch=100)
    assert sum(sizes) == 3000
    # Half of what it may hold: the other half runs while these are claimed.
    assert 40 < max(sizes) <= 54


@pytest.mark.parametrize("of", ["worker", "queue"])
def test_nothing_is_claimed_ahead_after_a_rest(app: Rota, held: threading.Event, of: str) -> None:
    """However quick the last jobs were, those after a rest may be slow: others could run them."""
    sizes: list[int] = []
    app.events.subscribe(JobsClaimed, lambda event: sizes.append(event.count))

    @app.task(name="quick")
    async def quick() -> None: ...

    @app.task(name="slow")
    def slow() -> None:
        held.wait(LONG)

    if of == "queue":
        app.queue("default", concurrency=4)
    quick.enqueue_many([()] * 3000)
    with working(app, concurrency=4):
        until(lambda: len(records(app, State.COMPLETED)) == 3000)
        assert max(sizes) > 40
        looks = len(sizes)
        until(lambda: len(sizes) >= looks + 2)
        slow.enqueue_many([()] * 100)
        until(lambda: sum(sizes) > 3000)
        claimed = sum(sizes)
        held.set()
    assert claimed <= 3004


def test_what_was_found_at_the_stop(app: Rota) -> None:
    """A claimer that is stopped in the middle of a claim keeps nothing of it to itself."""
    jobs: list[list[ClaimedJob]] = []

    @app.task(name="job")
    async def job() -> None: ...

    async def stopped_in_a_claim() -> None:
        with claiming(app, jobs.append) as (claimer, _):
            stopper = threading.Thread(target=claimer.stop)
            started = threading.Event()

            def stop(event: JobsClaimed) -> None:
                # The first one may find the database busy.
                if event.count:
                    until(started.is_set)
                    stopper.start()
                    until(claimer._stopping.is_set)

            app.events.subscribe(JobsClaimed, stop)
            claimer.start()
            started.set()
            await asyncio.to_thread(until, lambda: jobs, "the jobs")
            await asyncio.to_thread(stopper.join)

    job.enqueue_many([()] * 10)
    asyncio.run(stopped_in_a_claim())
    assert [len(claim) for claim in jobs] == [3]


@pytest.mark.parametrize("what", ["lost", "doubted", "shared"])
def test_what_was_found_is_not_kept_back(
    app: Rota, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs although the database is away, and before what a new way of sharing lets through."""
    told: list[object] = []

    async def kept() -> None:
        with claiming(app, told.append) as (claimer, session):
            assert session.current is not None
            claimer._found(session.current, [], full=True)
            claimer._kept = session.current, jobs
            if what == "shared":
                claimer.share({"default": 1})
            elif what == "doubted":
                claimer.doubt()

            def away(operation: Operation[object]) -> NoReturn:
                # A release can take as long as it takes to reach the database.
                assert operation.name != "release" or not claimer._kept[1]
                raise StoreUnavailable("away")

            for asked in ("run", "send"):
                monkeypatch.setattr(claimer._connection, asked, away)
            with pytest.raises(StoreUnavailable):
                claimer._step()
            await asyncio.sleep(0)
            assert told[0] is jobs
            assert len(told) == (2 if what == "shared" else 1)
            claimer.stop()

    [job] = app.database.run(app.database.store.enqueue(Order(JobSpec("job"), ["{}"])))
    session = app.database.run(
        app.database.store.open_session(SessionInfo("alpha", 4711, ("default",), 60.0))
    )
    jobs = app.database.run(app.database.store.claim(session, ("default",), 1))
    assert [one.id for one in jobs] == [job]
    asyncio.run(kept())


def test_what_was_found_waits_for_no_connection(postgres_url: str) -> None:
    """Where the connection is found lost right after a claim, its jobs are handed over first."""
    told: list[object] = []

    async def lost() -> None:
        with claiming(app, told.append) as (claimer, session):
            assert session.current is not None
            claimer._waker.wait(0.0)
            assert isinstance(claimer._connection, PostgresConnection)
            raw = claimer._connection.raw()
            with psycopg.connect(postgres_url, autocommit=True) as admin:
                admin.execute("SELECT pg_terminate_backend(%s, 5000)", [raw.info.backend_pid])
            claimer._found(session.current, jobs, full=True)
            await asyncio.sleep(0)
            assert told == [jobs]
            claimer.stop()

    with migrated(postgres_url) as app:
        [job] = app.database.run(app.database.store.enqueue(Order(JobSpec("job"), ["{}"])))
        session = app.database.run(
            app.database.store.open_session(SessionInfo("alpha", 4711, ("default",), 60.0))
        )
        jobs = app.database.run(app.database.store.claim(session, ("default",), 1))
        assert [one.id for one in jobs] == [job]
        asyncio.run(lost())


def test_a_job_that_moves_is_not_given_back(postgres_url: str) -> None:
    """Its new lease is one that the worker does not know of yet, where it looks for those."""
    told: list[list[ClaimedJob]] = []
    singled, on = threading.Event(), threading.Event()

    async def moving() -> None:
        with claiming(app, told.append) as (claimer, session):
            leases = claimer._leases

            @contextmanager
            def slowly() -> Iterator[Callable[[LeaseId, LeaseId], None]]:
                def moved(old: LeaseId, new: LeaseId) -> None:
                    singled.set()
                    until(on.is_set)
                    known(old, new)

                with leases.moving() as known:
                    yield moved

            claimer._step()
            await asyncio.sleep(0)
            [[one, *_]] = told
            assert session.current is not None
            completion = Completion(
                one,
                session.current,
                app.tasks[one.task],
                moving=slowly,
                doubtful=claimer.doubt,
            )
            singling = asyncio.create_task(asyncio.to_thread(completion.single_out, app.database))
            await asyncio.to_thread(until, singled.is_set)
            claimer.doubt()
            step = asyncio.create_task(asyncio.to_thread(claimer._step))
            await asyncio.to_thread(until, lambda: leases._counting or step.done())
            on.set()
            await singling
            await step
            moved = completion.job.lease
            assert moved != one.lease
            done = [Settlement(one.id, moved, Move.COMPLETE)]
            assert app.database.run(app.database.store.settle(session.current, done)) == []
            claimer.stop()

    with migrated(postgres_url) as app:

        @app.task(name="job")
        def job() -> None: ...

        job.enqueue_many([()] * 2)
        asyncio.run(moving())


def test_a_claim_that_outlasts_its_session(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs do not run: others may have them. They run once, under the next session."""
    runs: list[int] = []
    opened: list[Session] = []
    real = Session.open

    def open_and_tell(self: Session) -> SessionId:
        opened.append(self)
        return real(self)

    monkeypatch.setattr(Session, "open", open_and_tell)
    with migrated(postgres_url) as app:

        @app.task(name="work", store_result=True)
        async def work(number: int) -> int:
            runs.append(number)
            return number

        work.enqueue(0).cancel()
        claimed: list[int] = []
        app.events.subscribe(JobsClaimed, lambda event: claimed.append(event.count))
        holder = psycopg.connect(postgres_url)
        with working(app, session_timeout=2.0), holder:
            [session] = opened
            until_it_sleeps(app)
            holder.execute("SELECT FROM rota.lane FOR UPDATE")
            work.enqueue(1)
            waiting = (
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            with psycopg.connect(postgres_url, autocommit=True) as admin:
                until(lambda: admin.execute(waiting).fetchall() != [(0,)], "the claim to wait")
            lost = session.current
            assert lost is not None
            session._lose(lost)
            until(lambda: session.current not in {None, lost}, "the next session")
            holder.rollback()
            until(lambda: records(app, State.COMPLETED), "its end")
        assert (runs, sum(claimed)) == ([1], 2)


@contextmanager
def migrated(url: str) -> Iterator[Rota]:
    """An app on an empty database."""
    with Rota(url) as app:
        with closing(app.database.store.connect()) as connection:
            migrate(app.database.store, connection)
        yield app


@contextmanager
def claiming(app: Rota, told: Callable[[Any], None]) -> Iterator[tuple[Claimer, Session]]:
    """A claimer for three jobs at a time, and its session; it tells what it would tell runners."""
    config = WorkerConfig(queues=("default",), concurrency=3)
    switchboard = Switchboard()
    switchboard.deliver = on_loop(asyncio.get_running_loop(), lambda _, jobs: told(jobs))
    switchboard.adopt = on_loop(asyncio.get_running_loop(), told)
    switchboard.learn = switchboard.cancel = switchboard.refuse = switchboard.lose = ignore
    switchboard.nudge = nothing
    leases = Leases()
    session = Session(
        app.database.store, config, app.events, switchboard, leases=leases, tasks=app.tasks
    )
    claimer = Claimer(
        app.database.store,
        config,
        app.events,
        session=session,
        leases=leases,
        switchboard=switchboard,
        share=Slots(config.concurrency).share(),
    )
    session.open()
    try:
        yield claimer, session
    finally:
        session.close()


def nothing() -> None:
    """What a claimer's worker does in a test."""


def ignore(_: object) -> None:
    """What it does with what it is told."""


def test_two_workers_share(app: Rota) -> None:
    """Two workers run each job once between them."""
    ran: list[int] = []

    @app.task(name="job")
    async def job(number: int) -> None:
        await asyncio.sleep(0.001)
        ran.append(number)

    job.enqueue_many([(number,) for number in range(400)])
    with Rota(app.url) as other:
        other.task(name="job")(job.function)
        with working(app, concurrency=4), working(other, concurrency=4):
            until(lambda: len(ran) >= 400)
            until(lambda: not records(app, State.RUNNING))
    assert sorted(ran) == list(range(400))


def test_drain(app: Rota) -> None:
    """A draining worker ends when nothing is left: no retry, no delayed job, no job elsewhere."""
    ran: list[str] = []

    @app.task(name="job", retry=lambda _attempt, _error: 0.05)
    async def job(name: str) -> None:
        ran.append(name)
        if name == "retried" and ran.count("retried") < 2:
            raise ValueError

    job.enqueue("now")
    job.enqueue("retried")
    job.using(delay=0.3).enqueue("delayed")
    drained(app)
    assert sorted(ran) == ["delayed", "now", "retried", "retried"]
    drained(app)


def test_drain_ends_with_its_last_job(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """A draining worker that sleeps beside its last job notices at once that it has ended."""
    asleep = threading.Event()
    let_them_sleep(monkeypatch, asleep.set)

    @app.task(name="job")
    def job() -> None:
        assert asleep.wait(LONG)

    last = job.enqueue()
    drained(app, poll=2 * LONG, upkeep=False)
    assert last.status is State.COMPLETED


def test_drain_leaves_other_queues(app: Rota) -> None:
    """What waits in queues that are not the worker's does not keep it."""

    @app.task(name="job")
    async def job() -> None: ...

    other = job.using(queue="other").enqueue()
    mine = job.enqueue()
    drained(app)
    assert (mine.status, other.status) == (State.COMPLETED, State.AVAILABLE)


@pytest.mark.parametrize("count", [1, 37])
def test_many_drains(app: Rota, count: int) -> None:
    """Worker after worker in one process: nothing of the one disturbs the next."""

    @app.task(name="job")
    async def job() -> None:
        await asyncio.sleep(0)

    for _ in range(4):
        job.enqueue_many([()] * count)
        drained(app, concurrency=5)
        assert not records(app, State.RUNNING)
    assert len(records(app, State.COMPLETED)) == 4 * count
