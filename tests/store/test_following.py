"""Successors: enqueued in the transaction that writes a job's end, if the fence lets it through."""

from collections.abc import Sequence

import pytest

from rota import Unique
from rota.database.recognise import blocking_caller
from rota.model.job import JobFilter, JobId, JobRecord, Keys, LeaseId, Order
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.following import gathered
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    enqueue,
    open_session,
    run_inside,
    running,
    settlement,
    spec_of,
    states,
    until,
)

NEXT = "shop.next"


def successor(number: int, **options: object) -> Order:
    """One job of the task that follows."""
    return Order(spec_of(task=NEXT, **options), [f'{{"number":{number}}}'])


def came(store: Store, connection: Connection) -> list[str]:
    """The args of all jobs of that task, in the order of their ids."""
    found = connection.run(store.list_jobs(JobFilter(task=NEXT, limit=1000)))
    return [job.args for job in reversed(found)]


def numbers(*wanted: int) -> list[str]:
    """The args of jobs with these numbers."""
    return [f'{{"number":{number}}}' for number in wanted]


@pytest.mark.parametrize("move", [Move.COMPLETE, Move.DISCARD])
def test_a_successor(store: Store, connection: Connection, move: Move) -> None:
    """It is there when the job has ended, and the answer tells of it; its queue never had a job."""
    session, [job] = running(store, connection)
    ended = settlement(job, move, successor=successor(7, queue="new", headers='{"a":"b"}'))
    answer = connection.run(store.settle(session, [ended]))
    assert answer == []
    [following] = answer.following
    assert (following.task, following.queue) == (NEXT, "new")
    [found] = connection.run(store.get(following.jobs))
    assert (found.state, found.args, found.headers) == (State.AVAILABLE, '{"number":7}', {"a": "b"})
    [next_one] = claim(store, connection, session, queues=("new",))
    assert next_one.id == found.id


def test_the_fence_decides(store: Store, connection: Connection) -> None:
    """Of several settlements those that are refused have no successor, and none has two."""
    session, jobs = running(store, connection, 4)
    _, [elsewhere] = running(store, connection)
    ends = [
        settlement(job, Move.COMPLETE, successor=successor(number))
        for number, job in enumerate(jobs)
    ]
    ends[1] = ends[1]._replace(lease=LeaseId(ends[1].lease + 1000))
    ends[2] = settlement(elsewhere, Move.COMPLETE, successor=successor(2))
    answer = connection.run(store.settle(session, [*ends, ends[0]]))
    assert sorted(answer) == sorted([jobs[1].id, elsewhere.id, jobs[0].id])
    assert came(store, connection) == numbers(0, 3)
    assert len([job for each in answer.following for job in each.jobs]) == 2
    # A second time, as after a connection that broke.
    assert sorted(connection.run(store.settle(session, ends))) == sorted(each.job for each in ends)
    assert came(store, connection) == numbers(0, 3)


def test_jobs_of_a_dead_worker(store: Store, connection: Connection) -> None:
    """Whoever wakes up after its jobs were taken over enqueues nothing."""
    session, jobs = running(store, connection, 2)
    connection.run(store.close_session(session))
    ends = [settlement(job, Move.COMPLETE, successor=successor(1)) for job in jobs]
    assert len(connection.run(store.settle(session, ends))) == 2
    assert came(store, connection) == []


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_both_or_neither(store: Store, connection: Connection, other: Connection, end: str) -> None:
    """The end of the job and its successor are one transaction."""
    session, [job] = running(store, connection)
    transaction = store.transaction()
    ended = settlement(job, Move.COMPLETE, successor=successor(1))
    run_inside(store, transaction, store.settle(session, [ended]))
    assert came(store, other) == []
    getattr(transaction, end)()
    committed = end == "commit"
    assert came(store, other) == (numbers(1) if committed else [])
    assert states(store, other, [job.id]) == [State.COMPLETED if committed else State.RUNNING]


@pytest.mark.parametrize("held", [True, False])
def test_a_tagged_transaction(
    store: Store, connection: Connection, other: Connection, *, held: bool
) -> None:
    """The handler's transaction has the successor, too, if the job is still held."""
    session, [job] = running(store, connection)
    if not held:
        connection.run(store.close_session(session))
    transaction = store.transaction(tagged=True)
    ended = settlement(job, Move.COMPLETE, successor=successor(1))
    answer = blocking_caller(transaction.connection).run(store.settle_tagged(session, ended, None))
    assert (answer == [], len(answer.following)) == (held, int(held))
    transaction.commit()
    assert came(store, other) == (numbers(1) if held else [])


def test_a_job_singled_out(store: Store, connection: Connection) -> None:
    """The settlement of a job whose transaction was rolled back has its successor, once."""
    session, [job] = running(store, connection)
    ended = settlement(job, Move.DISCARD, successor=successor(1))
    for answer in ([], [job.id]):
        assert connection.run(store.settle_free(session, ended)) == answer
        assert came(store, connection) == numbers(1)


def test_the_key_of_the_job_itself(store: Store, connection: Connection) -> None:
    """A unique job can be followed by one of the same key: its own is free by then."""
    spec = spec_of(task=NEXT, unique=Unique(), queue="default")
    order = Order(spec, ['{"number":1}'], Keys(unique=["k"]))
    connection.run(store.enqueue(order))
    session = open_session(store, connection)
    [job] = claim(store, connection, session)
    again = order._replace(args=['{"number":2}'])
    ended = settlement(job, Move.COMPLETE, successor=again)
    assert len(connection.run(store.settle(session, [ended])).following[0].jobs) == 1
    [last] = claim(store, connection, session)
    assert (last.args, last.unique_key) == ('{"number":2}', "k")


def test_a_key_that_is_taken(store: Store, connection: Connection) -> None:
    """Two jobs with a unique successor have one, and so has the next batch."""
    session, jobs = running(store, connection, 3)
    spec = spec_of(task=NEXT, unique=Unique(), queue="later")
    ends = [
        settlement(job, Move.COMPLETE, successor=Order(spec, numbers(number), Keys(unique=["k"])))
        for number, job in enumerate(jobs)
    ]
    [following] = connection.run(store.settle(session, ends[:2])).following
    assert len(following.jobs) == 1
    [following] = connection.run(store.settle(session, ends[2:])).following
    assert following.jobs == ()
    assert came(store, connection) == numbers(0)


def test_many(store: Store, connection: Connection) -> None:
    """Successors of several tasks, with and without keys, all at once."""
    session, jobs = running(store, connection, 60)
    keyed = spec_of(task=NEXT, unique=Unique(), queue="keyed")
    ends = [
        settlement(
            job,
            Move.COMPLETE if number % 4 else Move.DISCARD,
            successor=Order(keyed, numbers(number), Keys(unique=[f"k{number}"]))
            if number % 2
            else successor(number, priority=number % 3),
        )
        for number, job in enumerate(jobs)
    ]
    assert connection.run(store.settle(session, ends)) == []
    assert sorted(came(store, connection)) == sorted(numbers(*range(60)))


def test_orders_of_one_spec_become_one() -> None:
    """Their args and keys stay together; other specs and other headers are orders of their own."""
    keyed = [
        Order(spec_of(task="a"), [f"{n}"], Keys(unique=[f"u{n}"], fair=[f"f{n}"])) for n in range(2)
    ]
    plain = [Order(spec_of(task="b", headers=headers), ["{}"]) for headers in (None, "{}", None)]
    other = Order(spec_of(task="b", priority=1), ["{}"])
    assert gathered([*plain, other, *keyed]) == [
        Order(keyed[0].spec, ["0", "1"], Keys(["u0", "u1"], None, ["f0", "f1"])),
        Order(plain[0].spec, ["{}", "{}"]),
        other,
        plain[1],
    ]


def test_a_rescue(store: Store, connection: Connection) -> None:
    """Only what a rescue discards is asked about; the successor is in the rescue's transaction."""
    asked: list[JobRecord] = []

    def follow(discarded: Sequence[JobRecord]) -> list[Order]:
        asked.extend(discarded)
        return [successor(job.id, queue="after") for job in discarded]

    lost = []
    for attempts in (1, 2):
        [job] = enqueue(store, connection, max_attempts=attempts)
        session = open_session(store, connection, timeout=0.02)
        assert [found.id for found in claim(store, connection, session)] == [job]
        rescue = until(
            lambda: next(
                (
                    found
                    for found in connection.run(store.rescue(None, follow))
                    if found.session == session  # noqa: B023 - called at once
                ),
                None,
            )
        )
        lost.append((job, rescue))
    (first, discarding), (second, giving_back) = lost
    assert discarding.discarded == (first,)
    assert giving_back.available == (second,)
    [record] = asked
    assert (record.id, record.state, record.attempt) == (first, State.DISCARDED, 1)
    assert record.errors[-1].exception == "rota.WorkerDied"
    assert came(store, connection) == numbers(first)
    [following] = discarding.following
    assert connection.run(store.get(following.jobs))[0].args == f'{{"number":{first}}}'
    assert giving_back.following == ()


def test_without_one(store: Store, connection: Connection) -> None:
    """Nothing is told, and nothing is there."""
    session, jobs = running(store, connection, 2)
    ends = [settlement(job, Move.COMPLETE) for job in jobs]
    assert connection.run(store.settle(session, ends)).following == ()
    assert came(store, connection) == []
    assert JobId(0) not in connection.run(store.settle(session, []))
