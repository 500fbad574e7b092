"""What goes on just now: lanes, workers, the horizon."""

from dataclasses import replace

from rota import Limit
from rota.model.job import ClaimedJob, SessionId
from rota.model.limit_record import LimitRecord
from rota.model.states import Move
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import claim, enqueue, open_session, settle, settlement, until
from tests.store.keying import fair, keys_of, limited


def waits(store: Store, connection: Connection) -> dict[tuple[str, int], bool]:
    """Each lane that was told, and whether a job waits in it."""
    return {
        (lane.queue, lane.priority): lane.oldest is not None
        for lane in connection.run(store.lanes())
    }


def complete(
    store: Store, connection: Connection, session: SessionId, jobs: list[ClaimedJob]
) -> None:
    """Settle jobs as completed."""
    done = [settlement(job, Move.COMPLETE) for job in jobs]
    assert settle(store, connection, session, *done) == []


def test_nothing(store: Store, connection: Connection) -> None:
    """A new database has no lanes and no workers, and a name."""
    assert connection.run(store.lanes()) == []
    assert connection.run(store.workers()) == []
    name, _, version = connection.run(store.product()).partition(" ")
    assert name.lower().startswith(store.name)
    assert version[0].isdigit()


def test_lanes(store: Store, connection: Connection) -> None:
    """Each lane knows for how long its next job has been there; paused ones, too."""
    enqueue(store, connection, 3)
    enqueue(store, connection, 1, priority=5)
    enqueue(store, connection, 1, queue="mail")
    enqueue(store, connection, 1, queue="later", delay=60.0)
    connection.run(store.pause("mail"))
    found = waits(store, connection)
    assert {lane for lane, waiting in found.items() if waiting} == {
        ("default", 0), ("default", 5), ("mail", 0),
    }  # fmt: skip
    assert {lane.queue: lane.paused for lane in connection.run(store.lanes())}["mail"]
    assert all(0 <= (lane.oldest or 0) < 20 for lane in connection.run(store.lanes()))
    session = open_session(store, connection)
    claim(store, connection, session)
    found = waits(store, connection)
    assert {lane for lane, waiting in found.items() if waiting} == {("mail", 0)}


def test_lanes_of_rates(store: Store, connection: Connection) -> None:
    """Jobs wait for a worker while their rate leaves room, and for something else once it is used up."""
    limited(store, connection, "aaa", Limit(key="{key}", per_hour=2))
    assert waits(store, connection).get(("default", 0))
    assert len(claim(store, connection, open_session(store, connection))) == 2
    assert not waits(store, connection).get(("default", 0))


def test_keys(store: Store, connection: Connection) -> None:
    """How many keys a queue has in use is known, in all its priorities."""
    enqueue(store, connection)
    limited(store, connection, "aab", queue="mail")
    fair(store, connection, "ax", queue="mail", priority=3)
    assert connection.run(store.health()).work.keys == (("mail", 4),)


def test_the_next_job_counts(store: Store, connection: Connection) -> None:
    """It is the first in line that is told, not the last that came."""
    [first] = enqueue(store, connection)

    def oldest() -> float:
        [lane] = connection.run(store.lanes())
        return lane.oldest or 0.0

    until(lambda: oldest() > 0.05 or None)
    enqueue(store, connection, 5)
    assert oldest() > 0.05
    [claimed] = claim(store, connection, open_session(store, connection), 1)
    assert claimed.id == first
    assert oldest() < 0.05 + 5


def test_workers(store: Store, connection: Connection) -> None:
    """A worker with what it holds, until it ends its session."""
    enqueue(store, connection, 3)
    session = open_session(store, connection)
    claim(store, connection, session, 2)
    [worker] = connection.run(store.workers())
    assert (worker.id, worker.worker, worker.queues) == (session, "alpha:4711", ("default",))
    assert (worker.timeout, worker.leased) == (600.0, 2)
    assert 0 <= worker.silent <= worker.open + 0.01 < 20
    assert (worker.oldest_lease is None) == (store.name == "sqlite")
    connection.run(store.close_session(session))
    assert connection.run(store.workers()) == []


def test_silence(store: Store, connection: Connection) -> None:
    """A worker is heard of when it renews; it is there for longer than that."""
    session = open_session(store, connection)

    def silent() -> bool | None:
        return connection.run(store.workers())[0].silent > 0.05 or None

    until(silent)
    connection.run(store.renew(session))
    [worker] = connection.run(store.workers())
    assert worker.silent < worker.open
    assert worker.open > 0.05


def test_the_log_of_a_file(store: Store, connection: Connection) -> None:
    """SQLite tells how long its log is; PostgreSQL what holds the horizon."""
    enqueue(store, connection)
    horizon = connection.run(store.horizon())
    if store.name == "sqlite":
        assert horizon.log_size
    else:
        assert horizon.log_size is None


def test_what_workers_hold(store: Store, connection: Connection) -> None:
    """Each job with its worker, task, queue and attempt; those first that it has had the longest."""
    early = enqueue(store, connection, 2)
    [mail] = enqueue(store, connection, queue="mail", task="shop.mail")
    enqueue(store, connection, queue="idle")
    one, two = (open_session(store, connection) for _ in range(2))
    connection.run(store.claim(one, ["default"], 1))
    connection.run(store.claim(two, ["mail"], 1))
    connection.run(store.claim(one, ["default"], 1))
    held = connection.run(store.held(10))
    assert [(job.session, job.job, job.task, job.queue, job.attempt) for job in held] == [
        (one, early[0], "shop.send", "default", 1),
        (one, early[1], "shop.send", "default", 1),
        (two, mail, "shop.mail", "mail", 1),
    ]
    noted = store.name == "postgres"
    assert all((job.seconds is not None) is noted for job in held)
    assert all(0 <= (job.seconds or 0) < 20 for job in held)
    assert [job.job for job in connection.run(store.held(1))] == [early[0], mail]


def test_limits(store: Store, connection: Connection) -> None:
    """Of each limit it is known how many of its places and starts are taken, and whether jobs wait."""
    both = Limit(key="{key}", running=2, per_minute=3)
    limited(store, connection, "aaab", limit=both)
    limited(store, connection, "c", limit=Limit(key="{key}", running=5), delay=60.0)
    wait = LimitRecord("a", running=2, held=0, rate=3, seconds=60.0, started=0, waiting=True)
    assert connection.run(store.limits(9)) == [wait, replace(wait, key="b")]
    session = open_session(store, connection)
    first = claim(store, connection, session)
    assert sorted(keys_of(first)) == ["a", "a", "b"]
    found = connection.run(store.limits(9))
    assert found == [
        replace(wait, held=2, started=2), replace(wait, key="b", held=1, started=1, waiting=False),
    ]  # fmt: skip
    assert [limit.full for limit in found] == [True, False]
    assert connection.run(store.limits(1)) == found[:1]
    # Places are free again at the end of a job, starts are not.
    complete(store, connection, session, first)
    assert connection.run(store.limits(9)) == [
        replace(wait, started=2), replace(wait, key="b", started=1, waiting=False),
    ]  # fmt: skip


def test_idle_limits(store: Store, connection: Connection) -> None:
    """A limit without jobs, and without starts in its window, is left out."""
    limited(store, connection, "a")
    session = open_session(store, connection)
    complete(store, connection, session, claim(store, connection, session))
    assert connection.run(store.limits(9)) == []


def test_starts_that_are_over(store: Store, connection: Connection) -> None:
    """Starts count until the window has passed them."""
    limited(store, connection, "aa", limit=Limit(key="{key}", per_second=1))
    session = open_session(store, connection)
    complete(store, connection, session, claim(store, connection, session))
    over = LimitRecord("a", None, 0, rate=1, seconds=1.0, started=0, waiting=True)
    assert until(lambda: connection.run(store.limits(9)) == [over] or None)
