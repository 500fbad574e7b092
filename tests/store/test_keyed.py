"""Storing jobs that have keys, before any of their options comes into it."""

from rota import Limit
from rota.model.enqueued import Placing
from rota.model.job import JobId, Keys, Order
from rota.model.states import State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import claim, enqueue, open_session, run_inside, spec_of, states

LIMIT = Limit(key="{tenant}", running=1)


def test_keyed_jobs_are_jobs(store: Store, connection: Connection) -> None:
    """They are stored in the order of their args, beside plain ones, and are claimed like these."""
    plain = enqueue(store, connection)
    args = [f'{{"tenant": {number}}}' for number in range(3)]
    keys = Keys(limit=["a", "b", "c"])
    placed = connection.run(store.enqueue(Order(spec_of(limit=LIMIT), args, keys))).placed
    assert [one.placing for one in placed] == [Placing.CREATED] * 3
    jobs = [one.job for one in placed]
    session = open_session(store, connection)
    found = claim(store, connection, session)
    assert [job.id for job in found] == plain + jobs
    assert [job.args for job in found[1:]] == args


def test_keyed_jobs_with_a_time(store: Store, connection: Connection) -> None:
    """They wait for it, in a queue that did not exist before."""
    spec = spec_of(limit=LIMIT, queue="new", delay=60.0)
    [placed] = connection.run(store.enqueue(Order(spec, ["{}"], Keys(limit=["a"])))).placed
    assert states(store, connection, [placed.job]) == [State.SCHEDULED]
    [queue] = connection.run(store.queues())
    assert (queue.name, dict(queue.counts)) == ("new", {State.SCHEDULED: 1})


def test_keyed_jobs_of_a_caller(store: Store, connection: Connection) -> None:
    """They are there if and only if the caller's transaction commits."""
    enqueue(store, connection)
    operation = store.enqueue(Order(spec_of(limit=LIMIT), ["{}"], Keys(limit=["a"])))
    transaction = store.transaction()
    [placed] = run_inside(store, transaction, operation).placed
    transaction.rollback()
    assert connection.run(store.get([placed.job])) == []


def test_no_keyed_jobs(store: Store, connection: Connection) -> None:
    """Without args nothing is stored."""
    assert (
        connection.run(store.enqueue(Order(spec_of(limit=LIMIT), [], Keys(limit=[])))).placed == []
    )
    assert connection.run(store.get([JobId(1)])) == []


def test_what_is_set_for_the_queue(store: Store, connection: Connection) -> None:
    """Attempts and timeout come from the queue's settings, unless the job has its own."""
    connection.run(store.set_queue("default", {"max_attempts": 2, "timeout": 7.5}))
    for given, expected in (({}, (2, 7.5)), ({"max_attempts": 5, "timeout": 3.0}, (5, 3.0))):
        spec = spec_of(limit=LIMIT, **given)
        [placed] = connection.run(store.enqueue(Order(spec, ["{}"], Keys(limit=["a"])))).placed
        [record] = connection.run(store.get([placed.job]))
        assert (record.max_attempts, record.timeout) == expected
