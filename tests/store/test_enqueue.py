"""Storing jobs: order, what is kept of them, and the caller's transaction."""

import json
import threading
from datetime import UTC, datetime, timedelta

import pytest

from rota.model.job import JobId, Keys, Order
from rota.model.states import Move, State
from rota.model.unique import Unique
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    PAST,
    claim,
    close_to,
    enqueue,
    open_session,
    record,
    run_inside,
    settle,
    settlement,
    spec_of,
    states,
)


def enqueued(store: Store, connection: Connection, args: list[str], *, own: bool) -> list[JobId]:
    """Jobs that come by Rota's own connection, which can COPY, or by a caller's, which cannot."""
    operation = store.enqueue(Order(spec_of(), args))
    if own:
        return connection.run(operation)
    transaction = store.transaction()
    jobs = run_inside(store, transaction, operation)
    transaction.commit()
    return jobs


@pytest.mark.parametrize("own", [False, True])
def test_ids_follow_the_order_of_the_args(
    store: Store,
    connection: Connection,
    own: bool,  # noqa: FBT001
) -> None:
    """Each id belongs to the args at its place, also where one statement is not enough."""
    args = [f"[{number}]" for number in range(12_345)]
    jobs = enqueued(store, connection, args, own=own)
    assert len(set(jobs)) == len(args)
    found = connection.run(store.get(jobs))
    assert [job.args for job in found] == args
    assert jobs == sorted(jobs)


def test_no_args_are_no_jobs(store: Store, connection: Connection) -> None:
    """An empty batch stores nothing and gives nothing."""
    assert connection.run(store.enqueue(Order(spec_of(), []))) == []
    session = open_session(store, connection)
    assert claim(store, connection, session) == []


def test_a_job_keeps_its_options(store: Store, connection: Connection) -> None:
    """What was asked for is what a lookup shows."""
    [job] = enqueue(
        store, connection, queue="mail", priority=-7, max_attempts=3, timeout=2.5, task="shop.mail"
    )
    found = record(store, connection, job)
    assert (found.id, found.task, found.args) == (job, "shop.mail", '{"number":0}')
    assert (found.queue, found.priority, found.state) == ("mail", -7, State.AVAILABLE)
    assert (found.attempt, found.max_attempts, found.timeout) == (0, 3, 2.5)
    assert close_to(found.enqueued_at, datetime.now(UTC))
    assert (found.scheduled_at, found.finished_at, found.result) == (None, None, None)
    assert (found.errors, found.worker, found.cancel_requested) == ((), None, False)


def test_a_delay_counts_from_the_moment_of_storing(store: Store, connection: Connection) -> None:
    """A delayed job is scheduled that many seconds after it was enqueued."""
    [job] = enqueue(store, connection, delay=3600.0)
    found = record(store, connection, job)
    assert found.state is State.SCHEDULED
    assert close_to(found.scheduled_at, found.enqueued_at + timedelta(hours=1), seconds=1)


def test_a_moment_is_kept_whatever_its_zone(store: Store, connection: Connection) -> None:
    """A job for a certain time is scheduled at exactly that time."""
    at = datetime(2091, 5, 4, 3, 2, 1, 500_000, tzinfo=UTC)
    [job] = enqueue(store, connection, at=at.astimezone())
    found = record(store, connection, job)
    assert found.state is State.SCHEDULED
    assert close_to(found.scheduled_at, at, seconds=0.01)


@pytest.mark.parametrize("count", [1, 2, 300])
@pytest.mark.parametrize("unique", [None, Unique(key="{number}")], ids=["plain", "unique"])
def test_a_past_moment_is_no_wait(
    store: Store, connection: Connection, unique: Unique | None, count: int
) -> None:
    """A job for a time that has passed is available at once, and needs no staging."""
    keys = None if unique is None else Keys(unique=[str(number) for number in range(count)])
    args = [f'{{"number":{number}}}' for number in range(count)]
    for at in (PAST, datetime.now(UTC)):
        spec = spec_of(at=at, unique=unique)
        jobs = connection.run(store.enqueue(Order(spec, args, keys)))
        assert states(store, connection, jobs) == [State.AVAILABLE] * count
        assert record(store, connection, jobs[-1]).scheduled_at is None
        session = open_session(store, connection)
        claimed = claim(store, connection, session, count)
        assert sorted(job.id for job in claimed) == sorted(jobs)
        settle(store, connection, session, *[settlement(job, Move.COMPLETE) for job in claimed])
    assert connection.run(store.stage(10)).staged == 0


def test_the_clock_of_the_database_says_what_is_past(store: Store, connection: Connection) -> None:
    """A moment that is near, and still to come, is waited for."""
    [job] = enqueue(store, connection, at=datetime.now(UTC) + timedelta(seconds=30))
    assert states(store, connection, [job]) == [State.SCHEDULED]


# One job, some by an INSERT, and as many as PostgreSQL takes by COPY.
@pytest.mark.parametrize("count", [1, 2, 300])
@pytest.mark.parametrize(
    "args",
    [
        '{"a":"\\"quoted\\" \\\\ back\\nslash\\ttab"}',
        '{"a":"grüße 你好 🌍 \\u00e9"}',
        '{"a":123456789012345678901234567890,"b":1.50e3}',
        '{"a":[null,true,[],{}],"a ":"$1 %s %(x)s :x ?"}',
        '"just text"',
        "[]",
    ],
)
def test_args_come_back_as_they_were_written(
    store: Store,
    connection: Connection,
    args: str,
    count: int,
) -> None:
    """The JSON text of args is stored character by character, by every way into the store."""
    jobs = connection.run(store.enqueue(Order(spec_of(), [args] * count)))
    assert record(store, connection, jobs[0]).args == args
    session = open_session(store, connection)
    claimed = claim(store, connection, session, count)
    assert [job.args for job in claimed] == [args] * count


@pytest.mark.parametrize("own", [True, False])
def test_many_args_come_back_as_they_were_written(
    store: Store,
    connection: Connection,
    own: bool,  # noqa: FBT001
) -> None:
    """Also where there are so many that they are copied, and a backslash would mean something."""
    args = [f'{{"a":"\\"{number}\\" \\\\ \\t"}}' for number in range(1100)]
    jobs = enqueued(store, connection, args, own=own)
    assert [job.args for job in connection.run(store.get(jobs))] == args


def test_large_args(store: Store, connection: Connection) -> None:
    """Args of several megabytes are stored, next to small ones."""
    args = [json.dumps("x" * size) for size in (5_000_000, 1, 5_000_000, 2)]
    jobs = connection.run(store.enqueue(Order(spec_of(), args)))
    assert [job.args for job in connection.run(store.get(jobs))] == args


@pytest.mark.parametrize(
    "name", ["'; DROP TABLE x; --", '"%s" %(a)s :b $1', "naïve/队列", "a" * 200]
)
def test_names_are_data(store: Store, connection: Connection, name: str) -> None:
    """Names of queues and tasks are stored verbatim, whatever they look like."""
    [job] = enqueue(store, connection, queue=name, task=name)
    found = record(store, connection, job)
    assert (found.queue, found.task) == (name, name)
    session = open_session(store, connection)
    assert [job.task for job in claim(store, connection, session, queues=(name,))] == [name]


@pytest.mark.parametrize("priority", [-32768, 32767])
def test_extreme_options(store: Store, connection: Connection, priority: int) -> None:
    """The ends of the allowed ranges are stored."""
    [job] = enqueue(store, connection, priority=priority, max_attempts=30_000, timeout=1e8)
    found = record(store, connection, job)
    assert (found.priority, found.max_attempts, found.timeout) == (priority, 30_000, 1e8)


def test_a_caller_that_rolls_back_has_enqueued_nothing(
    store: Store, connection: Connection
) -> None:
    """Jobs of a transaction that is undone never existed."""
    transaction = store.transaction()
    jobs = run_inside(store, transaction, store.enqueue(Order(spec_of(), ["1", "2"])))
    transaction.rollback()
    assert len(jobs) == 2
    assert connection.run(store.get(jobs)) == []
    session = open_session(store, connection)
    assert claim(store, connection, session) == []


def test_jobs_are_seen_once_the_caller_commits(store: Store, connection: Connection) -> None:
    """No other connection sees a job before the transaction that enqueued it is committed."""
    transaction = store.transaction()
    jobs = run_inside(store, transaction, store.enqueue(Order(spec_of(), ["1", "2"])))
    assert connection.run(store.get(jobs)) == []
    transaction.commit()
    assert [job.args for job in connection.run(store.get(jobs))] == ["1", "2"]
    session = open_session(store, connection)
    assert [job.id for job in claim(store, connection, session)] == jobs


def test_a_delayed_job_of_a_caller(store: Store, connection: Connection) -> None:
    """A caller's transaction may schedule jobs, too."""
    transaction = store.transaction()
    operation = store.enqueue(Order(spec_of(delay=60.0), ["1"]))
    [job] = run_inside(store, transaction, operation)
    transaction.commit()
    assert states(store, connection, [job]) == [State.SCHEDULED]


def test_producers_at_the_same_time(store: Store, connection: Connection) -> None:
    """Several connections enqueue at once, each job gets an id of its own and keeps its args."""
    start = threading.Barrier(4)
    found: dict[int, list[JobId]] = {}

    def produce(number: int) -> None:
        own = store.connect()
        try:
            start.wait()
            found[number] = []
            for batch in range(20):
                args = [f"[{number},{batch},{place}]" for place in range(5)]
                jobs = own.run(store.enqueue(Order(spec_of(), args)))
                found[number] += jobs
        finally:
            own.close()

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    jobs = [job for number in range(4) for job in found[number]]
    assert len(set(jobs)) == 400
    expected = [
        f"[{number},{batch},{place}]"
        for number in range(4)
        for batch in range(20)
        for place in range(5)
    ]
    assert [job.args for job in connection.run(store.get(jobs))] == expected
