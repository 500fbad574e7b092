"""What is set for single queues, and claims with a bound for one of them."""

import pytest

from rota.errors import LeaseLost
from rota.model.job import JobId, Order
from rota.model.queue_settings import FOREVER, QueueSettings
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import enqueue, open_session, run_inside, spec_of
from tests.store.keying import fair, limited

ALL = {
    "completed": 60.0,
    "cancelled": 0.0,
    "discarded": FOREVER,
    "max_attempts": 3,
    "timeout": 2.5,
    "concurrency": 4,
}


def test_setting_and_taking_back(store: Store, connection: Connection, other: Connection) -> None:
    """Each change leaves the rest as it was; what is set is what others read."""
    assert other.run(store.queue_settings()) == {}
    assert connection.run(store.set_queue("mail", ALL)) == QueueSettings(**ALL)  # type: ignore[arg-type]
    assert other.run(store.queue_settings()) == {"mail": QueueSettings(**ALL)}  # type: ignore[arg-type]
    changed = connection.run(store.set_queue("mail", {"timeout": None, "completed": 5}))
    assert (changed.timeout, changed.completed, changed.max_attempts) == (None, 5, 3)
    assert other.run(store.queue_settings()) == {"mail": changed}
    assert connection.run(store.set_queue("mail", dict.fromkeys(ALL))) == QueueSettings()
    assert other.run(store.queue_settings()) == {}


def test_a_queue_with_settings_alone_is_listed(store: Store, connection: Connection) -> None:
    """Like one that was paused before it had a job; and it can have jobs then."""
    connection.run(store.set_queue("mail", {"concurrency": 1}))
    [found] = connection.run(store.queues())
    assert (found.name, found.paused, dict(found.counts)) == ("mail", False, {})
    enqueue(store, connection, queue="mail")
    connection.run(store.pause("mail"))
    [found] = connection.run(store.queues())
    assert found.paused


def test_a_worker_hears_with_each_sign_of_life(store: Store, connection: Connection) -> None:
    """A renewal says what is set, infinity too."""
    session = open_session(store, connection)
    assert connection.run(store.renew(session)).queues == {}
    connection.run(store.set_queue("mail", ALL))
    connection.run(store.set_queue("paint", {"concurrency": 1}))
    assert connection.run(store.renew(session)).queues == {
        "mail": QueueSettings(**ALL),  # type: ignore[arg-type]
        "paint": QueueSettings(concurrency=1),
    }


def test_a_transaction_that_is_rolled_back(store: Store, connection: Connection) -> None:
    """A setting that was not committed never was."""
    transaction = store.transaction()
    run_inside(store, transaction, store.set_queue("mail", {"concurrency": 1}))
    transaction.rollback()
    assert connection.run(store.queue_settings()) == {}


def test_so_many_of_a_queue(store: Store, connection: Connection) -> None:
    """A claim takes no more of a queue than it may, in all its priorities, and fills up with others."""
    slow = enqueue(store, connection, 5, queue="slow")
    first = enqueue(store, connection, 2, queue="slow", priority=-1)
    free = enqueue(store, connection, 20)
    session = open_session(store, connection)

    def claim(limit: int, most: dict[str, int], *, woken: bool = False) -> list[JobId]:
        operation = store.claim(session, ["slow", "default"], limit, woken=woken, most=most)
        return [job.id for job in connection.run(operation)]

    assert sorted(claim(10, {"slow": 3})) == sorted([*first, slow[0], *free[:7]])
    assert claim(5, {"slow": 0}, woken=True) == free[7:12]
    assert sorted(claim(2, {"slow": 5, "none": 3}, woken=True)) == slow[1:3]
    assert sorted(claim(100, {"slow": 100, "default": 1})) == sorted([*slow[3:], free[12]])
    assert claim(100, {"slow": 0, "default": 0}) == []
    assert claim(100, {}) == free[13:]


def test_priorities_over_several_queues(store: Store, connection: Connection) -> None:
    """Smaller priorities come first, also if their queue gives but one job."""
    urgent = enqueue(store, connection, 3, queue="slow", priority=-5)
    free = enqueue(store, connection, 3)
    session = open_session(store, connection)
    claim = store.claim(session, ["default", "slow"], 2, most={"slow": 1})
    assert [job.id for job in connection.run(claim)] == [urgent[0], free[0]]


def test_a_new_lane_of_a_queue(store: Store, connection: Connection) -> None:
    """What was enqueued with a priority that the queue did not have before counts too."""
    session = open_session(store, connection)
    enqueue(store, connection, 1, queue="slow")
    assert len(connection.run(store.claim(session, ["slow"], 9, most={"slow": 2}))) == 1
    enqueue(store, connection, 3, queue="slow", priority=7)
    claim = store.claim(session, ["slow"], 9, woken=True, most={"slow": 2})
    assert len(connection.run(claim)) == 2


def test_so_many_of_a_queue_with_keys(store: Store, connection: Connection) -> None:
    """A queue's room is for jobs with and without keys together; none crowds out another queue."""
    slow = [
        *fair(store, connection, "abcdefgh", queue="slow"),
        *limited(store, connection, "xyz", queue="slow"),
        *enqueue(store, connection, 4, queue="slow"),
    ]
    free = fair(store, connection, "ab", queue="default")
    session = open_session(store, connection)

    def claim(limit: int, most: dict[str, int]) -> set[JobId]:
        operation = store.claim(session, ["slow", "default"], limit, most=most)
        return {job.id for job in connection.run(operation)}

    assert claim(100, {"slow": 0}) == set(free)
    first = claim(100, {"slow": 3})
    assert len(first) == 3
    assert first < set(slow)
    assert claim(100, {"slow": 0}) == set()
    assert first | claim(100, {"slow": 100}) == set(slow)


def test_a_dead_session(store: Store, connection: Connection) -> None:
    """The fence holds for such claims, too."""
    session = open_session(store, connection)
    enqueue(store, connection, 3)
    connection.run(store.close_session(session))
    with pytest.raises(LeaseLost):
        connection.run(store.claim(session, ["default"], 9, most={"default": 2}))


@pytest.mark.parametrize("given", [True, False])
def test_presets(store: Store, connection: Connection, *, given: bool) -> None:
    """What is set holds for a job of which nothing was said, and for no other."""
    connection.run(store.set_queue("default", {"max_attempts": 2, "timeout": 9.0}))
    spec = spec_of(max_attempts=7, timeout=3.0) if given else spec_of()
    [job] = connection.run(store.enqueue(Order(spec, ["{}"])))
    [found] = connection.run(store.get([job]))
    assert (found.max_attempts, found.timeout) == ((7, 3.0) if given else (2, 9.0))
