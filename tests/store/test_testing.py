"""The operations of the test kit: on the jobs of one open transaction, and on nothing else."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from rota.model.job import ClaimedJob, JobFilter, JobId, Keys, Order, SessionId
from rota.model.limit import Limit
from rota.model.settlement import completed, released
from rota.model.states import Move, State
from rota.model.unique import Unique
from rota.store.connections import Connection
from rota.store.operation import Operation
from rota.store.protocol import Store
from rota.store.testing import Wanted
from tests.store.factories import enqueue, open_session, run_inside, settlement, spec_of

T = TypeVar("T")

Inside = Callable[[Operation[T]], T]


class Test:
    """A transaction that is rolled back, and what happens in it."""

    __test__ = False

    def __init__(self, store: Store, transaction: Any, after: JobId) -> None:
        self.store = store
        self.transaction = transaction
        self.after = after
        self.run(store.testing.enter())
        self.session: SessionId = self.run(store.testing.begin())

    def run(self, operation: Operation[T]) -> T:
        return run_inside(self.store, self.transaction, operation)

    def enqueue(self, count: int = 1, keys: Keys | None = None, **options: Any) -> list[JobId]:
        args = [f'{{"number":{number}}}' for number in range(count)]
        return list(self.run(self.store.enqueue(Order(spec_of(**options), args, keys))))

    def claim(self, limit: int = 1, **wanted: Any) -> list[ClaimedJob]:
        chosen = Wanted(self.after, **wanted)
        return self.run(self.store.testing.claim(self.session, chosen, limit))

    def ids(self, limit: int = 100, **wanted: Any) -> list[JobId]:
        return [job.id for job in self.claim(limit, **wanted)]

    def stage(self, *, due: bool, **wanted: Any) -> list[JobId]:
        return self.run(self.store.testing.stage(Wanted(self.after, **wanted), due=due))

    def settle(self, job: ClaimedJob, move: Move = Move.COMPLETE, **how: Any) -> list[JobId]:
        return self.run(self.store.settle(self.session, [settlement(job, move, **how)]))

    def states(self, *jobs: JobId) -> list[State]:
        return [record.state for record in self.run(self.store.get(list(jobs)))]

    def own(self) -> list[JobId]:
        return self.run(self.store.testing.own(self.after))


@pytest.fixture
def before(store: Store, connection: Connection) -> JobId:
    """A job that was committed before the test."""
    [job] = enqueue(store, connection, priority=-5)
    return job


@pytest.fixture
def inside(store: Store, before: JobId) -> Iterator[Test]:
    transaction = store.transaction()
    yield Test(store, transaction, before)
    transaction.rollback()


def test_only_the_transactions_own_jobs_are_claimed(inside: Test, before: JobId) -> None:
    """A job that was there before is left alone; those of the transaction come in their order."""
    jobs = inside.enqueue(3)
    claimed = inside.claim(10)
    assert [job.id for job in claimed] == jobs
    assert [job.args for job in claimed] == [f'{{"number":{number}}}' for number in range(3)]
    assert {job.attempt for job in claimed} == {1}
    assert inside.claim() == []
    assert inside.states(before, *jobs) == [State.AVAILABLE, *[State.RUNNING] * 3]


def test_priority_comes_first(inside: Test) -> None:
    """Claims go by priority, then by the order of the enqueues, over all queues."""
    late, early = inside.enqueue(priority=1), inside.enqueue(priority=-1, queue="other")
    middle = inside.enqueue()
    assert inside.ids() == [*early, *middle, *late]


def test_wanted_says_which(inside: Test) -> None:
    """Jobs, queues and tasks narrow a claim."""
    mine, other = inside.enqueue(2), inside.enqueue(queue="other", task="shop.other")
    assert inside.ids(queues=["other"]) == other
    assert inside.ids(task="shop.none") == []
    assert inside.ids(jobs=mine[1:]) == mine[1:]
    assert inside.ids(task="shop.send") == mine[:1]


def test_a_job_in_a_savepoint_is_the_transactions(inside: Test) -> None:
    """A savepoint that was released has left its jobs; one that was rolled back has taken them along."""
    driver = inside.transaction.connection
    driver.execute("SAVEPOINT one")
    kept = inside.enqueue()
    driver.execute("RELEASE one")
    driver.execute("SAVEPOINT two")
    inside.enqueue()
    driver.execute("ROLLBACK TO two")
    assert inside.own() == kept
    assert inside.ids() == kept


def test_a_settled_job_has_ended(inside: Test) -> None:
    """The store's own settlement writes the end, once."""
    inside.enqueue()
    [job] = inside.claim()
    assert inside.states(job.id) == [State.RUNNING]
    assert inside.settle(job) == []
    assert inside.states(job.id) == [State.COMPLETED]
    assert inside.settle(job) == [job.id]


def test_a_claimed_job_is_in_one_state(inside: Test, before: JobId) -> None:
    """It is no longer listed as available, in a lane from which nothing was ever claimed, too."""
    [job, other] = inside.enqueue(2)
    assert inside.ids(1) == [job]

    def listed(state: State) -> list[JobId]:
        wanted = JobFilter(state=state)
        return [record.id for record in inside.run(inside.store.list_jobs(wanted))]

    assert listed(State.AVAILABLE) == [other, before]
    assert listed(State.RUNNING) == [job]


def test_a_released_job_comes_back(inside: Test) -> None:
    """A lease that was given up refuses its settlement, and the job is claimed again, unspent."""
    inside.enqueue()
    [job] = inside.claim()
    assert inside.run(inside.store.settle(inside.session, [released(job)])) == []
    assert inside.run(inside.store.settle(inside.session, [completed(job, 60.0)])) == [job.id]
    [again] = inside.claim()
    assert (again.id, again.attempt) == (job.id, 1)
    assert again.lease != job.lease


def test_a_retry_waits_and_is_staged(inside: Test) -> None:
    """Retried and delayed jobs are staged when their time has come, or at once if that is wanted."""
    inside.enqueue()
    [delayed] = inside.enqueue(delay=3600.0)
    [job] = inside.claim()
    inside.settle(job, Move.RETRY, delay=3600.0)
    assert inside.states(job.id, delayed) == [State.RETRYABLE, State.SCHEDULED]
    assert inside.stage(due=True) == []
    assert inside.stage(due=False, but=[delayed]) == [job.id]
    [again] = inside.claim()
    assert (again.id, again.attempt) == (job.id, 2)
    assert inside.stage(due=False, queues=["other"]) == []
    assert inside.stage(due=False, jobs=[delayed]) == [delayed]
    assert inside.ids() == [delayed]


def test_travelling_makes_jobs_due(inside: Test) -> None:
    """Set back by an hour, what was to wait for that long is due, and everything else is older."""
    [job] = inside.enqueue(delay=3600.0)
    [old] = inside.run(inside.store.get([job]))
    inside.run(inside.store.testing.travel([job], 3601.0))
    [new] = inside.run(inside.store.get([job]))
    for before, after in [
        (old.enqueued_at, new.enqueued_at),
        (old.scheduled_at, new.scheduled_at),
    ]:
        assert before is not None
        assert after is not None
        assert abs(before - after - timedelta(seconds=3601)) < timedelta(seconds=0.01)
    assert inside.stage(due=True) == [job]


def test_travelling_ends_a_retention(inside: Test) -> None:
    """A finished job is not seen any more when its time has passed."""
    inside.enqueue()
    [job] = inside.claim()
    inside.settle(job, keep=60.0)
    inside.run(inside.store.testing.travel([job.id], 30.0))
    assert inside.states(job.id) == [State.COMPLETED]
    inside.run(inside.store.testing.travel([job.id], 86400.0))
    if inside.store.name == "postgres":  # SQLite shows it until it is pruned
        assert inside.states(job.id) == []


def test_a_unique_job_through_its_life(inside: Test) -> None:
    """Its key is held while it waits, runs and is retried, and free at its end."""
    unique: dict[str, Any] = {"unique": Unique(by=("number",)), "keys": Keys(unique=["one"])}
    [job] = inside.enqueue(**unique)
    assert inside.enqueue(**unique) == [job]
    [claimed] = inside.claim()
    assert claimed.unique_key == "one"
    assert inside.enqueue(**unique) == [job]
    inside.settle(claimed, Move.RETRY, delay=0.0)
    assert inside.stage(due=False) == [job]
    assert inside.enqueue(**unique) == [job]
    [again] = inside.claim()
    assert again.id == job
    inside.settle(again)
    assert inside.enqueue(**unique) != [job]


def test_a_limit_lets_so_many_run(inside: Test) -> None:
    """A limit without a place keeps its jobs back, unless limits are no obstacle."""
    limited: dict[str, Any] = {"limit": Limit("one", running=1), "keys": Keys(limit=["one", "one"])}
    first, second = inside.enqueue(2, **limited)
    assert inside.ids(1) == [first]
    assert inside.claim() == []
    [job] = inside.claim(limits=False)
    assert (job.id, job.limited) == (second, True)


def test_a_rate_is_a_window_that_passes(inside: Test) -> None:
    """A rate lets so many start in its window; travelling moves the window on."""
    limited: dict[str, Any] = {
        "limit": Limit("one", per_minute=1),
        "keys": Keys(limit=["one", "one"]),
    }
    first, second = inside.enqueue(2, **limited)
    assert inside.ids(1) == [first]
    assert inside.claim() == []
    inside.run(inside.store.testing.travel([first, second], 61.0))
    assert inside.ids(1) == [second]


def test_a_paused_queue_gives_nothing(inside: Test) -> None:
    """Jobs of a paused queue stay where they are."""
    jobs = inside.enqueue()
    inside.run(inside.store.pause("default"))
    assert inside.claim() == []
    inside.run(inside.store.resume("default"))
    assert inside.ids() == jobs


def test_a_rollback_leaves_nothing(store: Store, connection: Connection, before: JobId) -> None:
    """Sessions, leases, keys and jobs go with the transaction; a worker goes on as before."""
    transaction = store.transaction()
    inside = Test(store, transaction, before)
    inside.enqueue(2, unique=Unique(by=("number",)), keys=Keys(unique=["one", "two"]))
    [job] = inside.claim()
    inside.settle(job)
    transaction.rollback()
    session = open_session(store, connection)
    assert [job.id for job in connection.run(store.claim(session, ["default"], 10))] == [before]
    [queue] = connection.run(store.queues())
    assert {state: count for state, count in queue.counts.items() if count} == {State.RUNNING: 1}
    assert [worker.id for worker in connection.run(store.workers())] == [session]


def test_here_tells_a_transaction(store: Store, inside: Test) -> None:
    """It stays the same to the transaction's end, and tells the database."""
    here = inside.run(store.testing.here())
    assert here.transaction
    assert inside.run(store.testing.transaction()) == here.transaction
    with store.lent() as own:
        assert own.run(store.testing.here()).database == here.database
