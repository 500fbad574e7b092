"""Queues of which a worker runs only so many jobs at once."""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Iterator

import pytest

from rota import Rota, State
from rota.events import JobsClaimed
from rota.model.job import ClaimedJob, JobId, LeaseId
from rota.worker.claim import Claimer
from rota.worker.turns import Turns
from tests.fixtures.workers import drained, records, until, working
from tests.worker.test_claiming import Gauge

BEAT = {"session_timeout": 1.0}
"""With it a worker hears five times a second what is set for queues."""


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Set at the end of the test at the latest, so that no handler waits for ever."""
    go = threading.Event()
    yield go
    go.set()


def running(app: Rota, queue: str) -> int:
    """How many jobs of a queue workers hold."""
    return sum(job.queue == queue for job in records(app, State.RUNNING))


@pytest.mark.parametrize("where", ["code", "database"])
@pytest.mark.parametrize("executor", ["loop", "thread"])
def test_never_more_than_said(app: Rota, where: str, executor: str) -> None:
    """So many jobs of the queue run at once, no more and no fewer; other queues take the rest."""
    slow, free = Gauge(), Gauge()
    passed = threading.Event()

    def work(gauge: Gauge, at_once: bool) -> None:  # noqa: FBT001
        with gauge:
            if not at_once:
                passed.wait(0.003)

    async def awork(gauge: Gauge, at_once: bool) -> None:  # noqa: FBT001
        with gauge:
            if not at_once:
                await asyncio.sleep(0.003)

    if executor == "loop":

        @app.task(name="slow", queue="slow")
        async def one(at_once: bool) -> None:  # noqa: FBT001
            await awork(slow, at_once)

        @app.task(name="free")
        async def other() -> None:
            await awork(free, at_once=False)
    else:

        @app.task(name="slow", queue="slow")
        def one(at_once: bool) -> None:  # noqa: FBT001
            work(slow, at_once)

        app.task(name="free")(lambda: work(free, at_once=False))
    if where == "code":
        app.queue("slow", concurrency=2)
    else:
        app.database.run(app.database.store.set_queue("slow", {"concurrency": 2}))
    # After those that take no time, many of the others are claimed ahead.
    app.tasks["slow"].enqueue_many([(True,)] * 500 + [(False,)] * 60)
    app.tasks["free"].enqueue_many([()] * 120)
    drained(app, concurrency=8)
    assert (slow.total, free.total) == (560, 120)
    assert slow.most == 2
    assert free.most > 2


def test_others_go_on_at_full_speed(app: Rota, held: threading.Event) -> None:
    """A queue whose jobs are stuck takes its places and no more, and hoards nothing."""
    ran = Counter[str]()

    @app.task(name="stuck", queue="slow")
    def stuck() -> None:
        held.wait()

    @app.task(name="quick")
    async def quick() -> None:
        ran["quick"] += 1

    app.queue("slow", concurrency=3)
    stuck.enqueue_many([()] * 500)
    quick.enqueue_many([()] * 2000)
    with working(app, concurrency=5):
        until(lambda: ran["quick"] == 2000)
        until(lambda: running(app, "slow") == 3)
        for _ in range(20):
            quick.enqueue()
        until(lambda: ran["quick"] == 2020)
        assert running(app, "slow") == 3
        held.set()
        until(lambda: not records(app, State.AVAILABLE))
    assert ran["quick"] == 2020


def test_what_is_held_takes_no_place(app: Rota, held: threading.Event) -> None:
    """Jobs that were claimed ahead while they were quick, and hang now, leave others their places."""

    @app.task(name="stuck", queue="slow")
    def stuck() -> None:
        held.wait()

    @app.task(name="quick", store_result=True)
    async def quick() -> int:
        return 1

    app.queue("slow", concurrency=1)
    stuck.enqueue_many([()] * 30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Turns, "_room", lambda *_: 10)
        with working(app, concurrency=4):
            until(lambda: running(app, "slow") == 30)
            assert quick.enqueue().result(timeout=20) == 1
            held.set()
            until(lambda: len(records(app, State.COMPLETED)) == 31)


def test_another_worker_runs_what_this_one_may_not(app: Rota, held: threading.Event) -> None:
    """The number is that of one worker process; two run twice as many."""

    def stuck() -> None:
        held.wait()

    app.task(name="stuck", queue="slow")(stuck)
    app.database.run(app.database.store.set_queue("slow", {"concurrency": 2}))
    app.tasks["stuck"].enqueue_many([()] * 10)
    with Rota(app.url) as other:
        other.task(name="stuck", queue="slow")(stuck)
        with working(app):
            until(lambda: running(app, "slow") == 2)
            with working(other):
                until(lambda: running(app, "slow") == 4)
                held.set()
                until(lambda: not records(app, State.AVAILABLE))


def test_in_their_order(app: Rota) -> None:
    """Jobs of the queue start in the order in which they were enqueued."""
    ran: list[int] = []

    @app.task(name="job", queue="slow")
    async def job(number: int) -> None:
        await asyncio.sleep(0)
        ran.append(number)

    app.queue("slow", concurrency=1)
    job.enqueue_many([(number,) for number in range(300)])
    drained(app)
    assert ran == list(range(300))


def test_quick_jobs_are_claimed_ahead(app: Rota) -> None:
    """A queue of quick jobs does not wait for a claim after each of them."""
    claims: list[int] = []
    app.on(JobsClaimed)(lambda event: claims.append(event.count))

    @app.task(name="job", queue="slow")
    async def job() -> None: ...

    app.queue("slow", concurrency=2)
    job.enqueue_many([()] * 3000)
    drained(app)
    assert len(records(app, State.COMPLETED)) == 3000
    assert max(claims) > 10


def test_a_setting_changes_under_way(app: Rota, held: threading.Event) -> None:
    """More, fewer, and none again: a worker follows within a sign of life, and loses no job."""
    go = threading.Event()
    now = Gauge()

    @app.task(name="stuck", queue="slow")
    def stuck() -> None:
        with now:
            (held if go.is_set() else go).wait()

    stuck.enqueue_many([()] * 40)
    with working(app, concurrency=30, **BEAT):
        until(lambda: now.now == 30)
        app.database.run(app.database.store.set_queue("slow", {"concurrency": 4}))
        until(lambda: app.queues.concurrency() == {"slow": 4})
        go.set()
        until(lambda: now.total == 34)
        assert now.now == 4
        app.database.run(app.database.store.set_queue("slow", {"concurrency": 6}))
        until(lambda: now.now == 6)
        app.database.run(app.database.store.set_queue("slow", {"concurrency": None}))
        until(lambda: now.now == 10)
        held.set()
        until(lambda: len(records(app, State.COMPLETED)) == 40)
    assert now.total == 40


def test_what_was_claimed_before_goes_back(app: Rota, held: threading.Event) -> None:
    """A worker that holds more than it may now gives the rest to others, unspent."""

    @app.task(name="stuck", queue="slow")
    def stuck() -> None:
        held.wait()

    stuck.enqueue_many([()] * 300)
    with pytest.MonkeyPatch.context() as patch:
        # As if the jobs had been quick so far.
        patch.setattr(Claimer, "_want", lambda self: 60 - self.outstanding)
        with working(app, concurrency=10, **BEAT):
            until(lambda: running(app, "slow") == 60)
            app.database.run(app.database.store.set_queue("slow", {"concurrency": 2}))
            # Ten run already, and none of them is stopped.
            until(lambda: running(app, "slow") == 10)
            assert len(records(app, State.AVAILABLE)) == 290
            held.set()
            until(lambda: len(records(app, State.COMPLETED)) == 300)
    assert {job.attempt for job in records(app)} == {1}


def test_cancelling_what_waits_for_its_turn(app: Rota, held: threading.Event) -> None:
    """A job that a worker holds without running it is cancelled before its turn comes."""
    turns: list[Turns] = []
    made = Turns.take

    def spy(self: Turns, job: ClaimedJob) -> bool:
        turns.append(self)
        return made(self, job)

    @app.task(name="stuck", queue="slow")
    def stuck() -> None:
        held.wait()

    app.queue("slow", concurrency=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Turns, "take", spy)
        patch.setattr(Turns, "_room", lambda *_: 5)  # a claimer that knows no measure
        first = stuck.enqueue()
        others = [stuck.enqueue() for _ in range(4)]
        with working(app, **BEAT):
            until(lambda: turns and turns[0].held == 4)
            others[2].cancel()
            until(lambda: others[2].status is State.CANCELLED)
            assert first.status is State.RUNNING
            assert turns[0].held == 3
            held.set()
            until(lambda: len(records(app, State.COMPLETED)) == 4)


def test_stopping_gives_back_what_waits(app: Rota, held: threading.Event) -> None:
    """A worker that stops returns the jobs that wait for their turn; no attempt is spent."""

    @app.task(name="stuck", queue="slow")
    def stuck() -> None:
        held.wait()

    app.queue("slow", concurrency=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Turns, "_room", lambda *_: 5)
        stuck.enqueue_many([()] * 5)
        with working(app) as worker:
            until(lambda: running(app, "slow") == 5)
            worker.stop()
            until(lambda: running(app, "slow") == 1)
            held.set()
    assert Counter(job.state for job in records(app)) == {State.COMPLETED: 1, State.AVAILABLE: 4}
    assert {job.attempt for job in records(app, State.AVAILABLE)} == {0}


def test_nothing_changes_where_nothing_is_said(app: Rota) -> None:
    """Claims of a worker whose queues have no concurrency are the claims that there always were."""
    asked: list[object] = []
    made = app.database.store.claim

    @app.task(name="job")
    async def job() -> None: ...

    app.queue("elsewhere", concurrency=1)
    app.queue("default", max_attempts=2)
    job.enqueue_many([()] * 10)

    def spy(*args: object, **how: object) -> object:
        asked.append(how["most"])
        return made(*args, **how)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app.database.store, "claim", spy)
        drained(app)
    assert set(asked) == {None}


def claimed(number: int, queue: str = "slow") -> ClaimedJob:
    """A job in the hands of a worker."""
    return ClaimedJob(JobId(number), LeaseId(1), "t", "{}", queue, 0, 1, 5, None, 0.0)


def test_no_room_before_the_runners_know() -> None:
    """What was claimed before has to be counted first."""
    turns = Turns({"slow": 2}, 10, lambda: None)
    assert turns.room() == {"slow": 0}
    inbox = deque([claimed(2), claimed(3, "free"), claimed(4)])
    excess = turns.adopt(inbox, [claimed(1)])
    assert excess == [claimed(4)]
    assert list(inbox) == [claimed(2), claimed(3, "free")]
    assert turns.room() == {"slow": 0}
    assert turns.take(claimed(2))
    assert turns.give(claimed(1)) is None
    assert turns.room() == {"slow": 1}


def test_who_had_too_little_is_told() -> None:
    """The end of a job wakes the claimer where it could have claimed more, and only there."""
    told: list[int] = []
    turns = Turns({"slow": 1, "calm": 1}, 10, lambda: told.append(1))
    turns.adopt(deque(), [])
    told.clear()
    turns.took([claimed(1), claimed(2, "free")], turns.room())
    assert turns.take(claimed(1))
    turns.give(claimed(1))
    assert len(told) == 1
    turns.took([], turns.room())
    turns.give(claimed(9, "calm"))
    assert len(told) == 1


@pytest.mark.parametrize("span", [0.001, 0.1])
def test_jobs_that_end_together_are_not_quick(span: float) -> None:
    """They may have run for hours beside each other; those that follow them have not."""
    turns = Turns({"slow": 2}, 1000, lambda: None)
    turns.adopt(deque(), [])
    turns.took([claimed(number) for number in range(7)], turns.room())
    for number in range(2):
        turns.give(claimed(number))
    turns.measure(span, 0.1)
    for number in range(2, 7):
        turns.give(claimed(number))
    assert turns.room() == {"slow": 2}
    turns.measure(0.1, 0.1)
    assert turns.room() == {"slow": 2 + 5 - 2}
    turns.rest()
    assert turns.room() == {"slow": 2}
