"""The counts of `queues` against the jobs themselves, after every operation."""

import random
from collections import Counter

import pytest

from rota.model.job import ClaimedJob, JobFilter, JobId, Order, QueueRecord, SessionId
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    DUE,
    NOBODY,
    claim,
    enqueue,
    open_session,
    rescued,
    retry_discarded,
    run_inside,
    running,
    settle,
    settlement,
    spec_of,
    until,
)

QUEUES = ("default", "mail")
FIRST = JobId(0)


def told(store: Store, connection: Connection) -> Counter[tuple[str, State]]:
    """What the counters say."""
    return Counter(
        {
            (queue.name, state): jobs
            for queue in connection.run(store.queues())
            for state, jobs in queue.counts.items()
            if jobs
        }
    )


def counted(store: Store, connection: Connection) -> Counter[tuple[str, State]]:
    """What counting says."""
    found = connection.run(store.list_jobs(JobFilter(limit=1_000_000)))
    return Counter((job.queue, job.state) for job in found)


def record(store: Store, connection: Connection, name: str = "default") -> QueueRecord:
    """What is told of one queue."""
    [found] = [queue for queue in connection.run(store.queues()) if queue.name == name]
    return found


class Life:
    """Does anything to jobs, and compares each time."""

    def __init__(self, store: Store, connection: Connection, seed: int) -> None:
        self.store = store
        self.connection = connection
        self.chance = random.Random(seed)
        self.session = open_session(store, connection)
        self.jobs: list[JobId] = []
        self.held: list[tuple[SessionId, ClaimedJob]] = []
        self.operations = [
            self.enqueue, self.enqueue, self.claim, self.claim, self.settle, self.settle,
            self.cancel, self.delete, self.retry, self.retry_discarded, self.release, self.close,
            self.rescue, self.stage, self.tidy, self.clear,
        ]  # fmt: skip

    def some(self) -> list[JobId]:
        """A few jobs, in whatever state, and one that is none."""
        found = self.chance.sample(self.jobs, min(len(self.jobs), self.chance.choice((1, 5))))
        return [*found, NOBODY]

    def enqueue(self) -> None:
        later = self.chance.choice(({}, {}, {"delay": 600.0}, {"delay": DUE}))
        options = {
            "queue": self.chance.choice(QUEUES),
            "priority": self.chance.choice((0, 5)),
            "max_attempts": self.chance.choice((1, 2)),
        }
        count = self.chance.choice((1, 3, 210))
        self.jobs += enqueue(self.store, self.connection, count, **options, **later)

    def claim(self) -> None:
        size = self.chance.choice((1, 4, 100))
        jobs = claim(self.store, self.connection, self.session, size, QUEUES)
        self.held += [(self.session, job) for job in jobs]

    def settle(self) -> None:
        moves = (Move.COMPLETE, Move.DISCARD, Move.CANCEL, Move.RETRY, Move.SNOOZE, Move.RELEASE)
        mine = [job for session, job in self.held if session == self.session][:50]
        settlements = [
            settlement(
                job,
                self.chance.choice(moves),
                delay=self.chance.choice((0.0, 600.0)),
                keep=self.chance.choice((None, 0.0, 3600.0, 86_400.0)),
            )
            for job in self.chance.sample(mine, len(mine) // self.chance.choice((1, 2)))
        ]
        # Half of what was settled stays here, to be settled once more, and to be refused.
        settle(self.store, self.connection, self.session, *settlements)

    def cancel(self) -> None:
        self.connection.run(self.store.cancel(self.some()))

    def delete(self) -> None:
        self.connection.run(self.store.delete(self.some()))

    def retry(self) -> None:
        self.connection.run(self.store.retry(self.some()))

    def retry_discarded(self) -> None:
        retry_discarded(self.store, self.connection, self.chance.choice((None, "mail")))

    def clear(self) -> None:
        state = self.chance.choice([*State])
        queue = self.chance.choice(QUEUES)
        until = self.connection.run(self.store.last_job())
        self.connection.run(self.store.clear(queue, state, after=FIRST, until=until, limit=7))

    def release(self) -> None:
        leases = {job.lease for _, job in self.held if self.chance.random() < 0.5}
        self.connection.run(self.store.release(self.session, list(leases)))

    def close(self) -> None:
        self.connection.run(self.store.close_session(self.session))
        self.session = open_session(self.store, self.connection)

    def rescue(self) -> None:
        doomed = open_session(self.store, self.connection, timeout=0.001)
        jobs = claim(self.store, self.connection, doomed, self.chance.choice((3, 30)), QUEUES)
        self.connection.run(self.store.cancel([job.id for job in jobs[:1]]))
        rescued(self.store, self.connection, doomed, keep={"mail": 3600.0})

    def stage(self) -> None:
        self.connection.run(self.store.stage(self.chance.choice((1, 1000))))

    def tidy(self) -> None:
        self.connection.run(self.store.squeeze())
        self.connection.run(self.store.tidy())


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.large) for seed in (3, 4, 5))]
)
def test_the_counts_are_right_after_every_operation(
    store: Store, connection: Connection, seed: int
) -> None:
    """Whatever is done to jobs, the counters say what counting says; totals never fall."""
    life = Life(store, connection, seed)
    totals: dict[str, tuple[int, int]] = {}
    seen: set[State] = set()
    for _ in range(60):
        operation = life.chance.choice(life.operations)
        operation()
        assert told(store, connection) == counted(store, connection), operation
        seen |= {state for _, state in told(store, connection)}
        for queue in connection.run(store.queues()):
            appended, claimed = totals.get(queue.name, (0, 0))
            assert queue.appended >= appended
            assert queue.claimed >= claimed
            totals[queue.name] = queue.appended, queue.claimed
    assert len(seen) >= 4


def test_running_totals(store: Store, connection: Connection) -> None:
    """Each time a job becomes available or is claimed counts, whatever becomes of it."""
    session, [one, two, three] = running(store, connection, 3)
    assert (record(store, connection).appended, record(store, connection).claimed) == (3, 3)
    settle(store, connection, session, settlement(one, Move.RELEASE))
    settle(store, connection, session, settlement(two, Move.RETRY))
    settle(store, connection, session, settlement(three, Move.COMPLETE, keep=0.0))
    assert (record(store, connection).appended, record(store, connection).claimed) == (4, 3)
    connection.run(store.stage(10))
    assert (record(store, connection).appended, record(store, connection).claimed) == (5, 3)
    connection.run(store.delete([one.id]))
    connection.run(store.cancel([two.id]))
    assert (record(store, connection).appended, record(store, connection).claimed) == (5, 3)
    connection.run(store.retry([two.id]))
    assert (record(store, connection).appended, record(store, connection).claimed) == (6, 3)
    assert len(claim(store, connection, session)) == 1
    assert (record(store, connection).appended, record(store, connection).claimed) == (6, 4)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_callers_transaction(store: Store, connection: Connection, end: str) -> None:
    """What a caller enqueues counts with the caller's commit, and not before."""
    enqueue(store, connection)
    before = told(store, connection)
    transaction = store.transaction()
    run_inside(store, transaction, store.enqueue(Order(spec_of(), ["{}"] * 3)))
    run_inside(store, transaction, store.enqueue(Order(spec_of(delay=60.0), ["{}"])))
    assert told(store, connection) == before
    getattr(transaction, end)()
    if end == "commit":
        before += Counter({("default", State.AVAILABLE): 3, ("default", State.SCHEDULED): 1})
    assert told(store, connection) == before == counted(store, connection)


def test_jobs_past_their_retention(store: Store, connection: Connection) -> None:
    """They are not counted from the moment on at which they are not found."""
    session, jobs = running(store, connection, 4)
    short = [settlement(job, Move.COMPLETE, keep=0.01) for job in jobs[:2]]
    settle(store, connection, session, *short, settlement(jobs[2], Move.COMPLETE))
    settle(store, connection, session, settlement(jobs[3], Move.DISCARD))
    left = Counter({("default", State.COMPLETED): 1, ("default", State.DISCARDED): 1})
    until(lambda: told(store, connection) == left or None)
    assert counted(store, connection) == left
    # Deleting or retrying what is out of sight, or pruning it, changes no count.
    connection.run(store.retry([jobs[0].id]))
    connection.run(store.delete([jobs[1].id]))
    connection.run(store.tidy())
    assert told(store, connection) == counted(store, connection) == left


def test_squeezing_changes_no_count(store: Store, connection: Connection) -> None:
    """It says whether it wrote something; the counts are the same before and after."""
    session, jobs = running(store, connection, 3)
    settle(store, connection, session, settlement(jobs[0], Move.COMPLETE))
    enqueue(store, connection, 5, delay=60.0)
    before = record(store, connection)
    assert isinstance(connection.run(store.squeeze()), bool)
    assert record(store, connection) == before
