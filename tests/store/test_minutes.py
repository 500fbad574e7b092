"""The history: what is recorded of each minute, and what of it is told."""

from datetime import UTC, datetime, timedelta

from rota.model.history import ALL, KEPT, HistoryPoint
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    enqueue,
    in_state,
    minutes_pass,
    open_session,
    rescued,
    running,
    settle,
    settlement,
)


def look(store: Store, connection: Connection) -> bool:
    """Record the minute that is over; whether there was one."""
    return connection.run(store.history.record())


def told(
    store: Store, connection: Connection, queue: str = ALL, *, step: int = 1
) -> list[HistoryPoint]:
    """All there is, but for the minute from which on something is known."""
    since = int(datetime.now(UTC).timestamp()) // 60 - KEPT
    points = connection.run(store.history.read(queue, since=since, step=step))
    return [point for point in points if point.seconds]


def figures(point: HistoryPoint) -> tuple[int, int, int, int, int]:
    """The numbers of a point, but for times."""
    return point.appended, point.claimed, point.completed, point.discarded, point.available


def begin(store: Store, connection: Connection) -> None:
    """Record what there is, and let a minute begin."""
    assert look(store, connection)
    minutes_pass(store, connection)


def test_a_minute(store: Store, connection: Connection) -> None:
    """What happened in it, of each queue and of all together, and what waits at its end."""
    enqueue(store, connection, 7)
    begin(store, connection)
    session, jobs = running(store, connection, 3, queue="mail")
    ends = [
        settlement(jobs[0], Move.COMPLETE),
        settlement(jobs[1], Move.DISCARD),
        settlement(jobs[2], Move.RETRY, delay=600.0),
    ]
    settle(store, connection, session, *ends)
    enqueue(store, connection, 2)
    assert look(store, connection)
    [both], [mail], [default] = (
        told(store, connection, queue) for queue in (ALL, "mail", "default")
    )
    assert figures(mail) == (3, 3, 1, 1, 0)
    assert figures(default) == (2, 0, 0, 0, 9)
    assert figures(both) == (5, 3, 1, 1, 9)
    assert mail.oldest is None
    assert default.oldest is not None
    assert both.oldest == default.oldest
    assert {point.seconds for point in (both, mail, default)} == {60}
    assert timedelta(0) < datetime.now(UTC) - both.at < timedelta(minutes=3)


def test_a_minute_is_recorded_once(store: Store, connection: Connection) -> None:
    """However many workers look; a look says so until one of them has."""
    assert connection.run(store.look(["default"])).unrecorded
    begin(store, connection)
    enqueue(store, connection)
    assert connection.run(store.look(["default"])).unrecorded
    assert look(store, connection)
    assert not connection.run(store.look(["default"])).unrecorded
    enqueue(store, connection)
    assert not look(store, connection)
    [point] = told(store, connection)
    assert point.appended == 1
    minutes_pass(store, connection)
    assert look(store, connection)
    assert [point.appended for point in told(store, connection)] == [1, 1]


def test_nothing_is_known_of_before(store: Store, connection: Connection) -> None:
    """What lies there when the first minute is recorded did not come in it."""
    enqueue(store, connection, 5)
    begin(store, connection)
    since = int(datetime.now(UTC).timestamp()) // 60 - KEPT
    [point] = connection.run(store.history.read(ALL, since=since, step=1))
    assert point.seconds == 0
    assert figures(point) == (0, 0, 0, 0, 5)


def test_a_quiet_minute(store: Store, connection: Connection) -> None:
    """A queue in which nothing happens has no row; the minute was recorded, so its numbers are zeros."""
    begin(store, connection)
    enqueue(store, connection, 1, queue="mail")
    look(store, connection)
    session = open_session(store, connection)
    [job] = claim(store, connection, session, queues=("mail",))
    settle(store, connection, session, settlement(job, Move.COMPLETE))
    for _ in range(3):
        minutes_pass(store, connection)
        assert look(store, connection)
    assert [figures(point) for point in told(store, connection, "mail")] == [
        (1, 0, 0, 0, 1),
        (0, 1, 1, 0, 0),
        (0, 0, 0, 0, 0),
        (0, 0, 0, 0, 0),
    ]
    assert told(store, connection, "nothing of this name")[0].appended == 0


def test_minutes_without_workers(store: Store, connection: Connection) -> None:
    """They are missing; what came in them is in the next one, which says how long that took."""
    begin(store, connection)
    look(store, connection)
    enqueue(store, connection, 3)
    minutes_pass(store, connection, 10)
    look(store, connection)
    quiet, busy = told(store, connection)
    assert (quiet.appended, busy.appended) == (0, 3)
    assert (quiet.seconds, busy.seconds) == (60, 600)
    assert busy.at - quiet.at == timedelta(minutes=10)


def test_jobs_that_wait_are_told_every_minute(store: Store, connection: Connection) -> None:
    """Also in a queue in which nothing happens: they become older."""
    begin(store, connection)
    enqueue(store, connection, 2)
    look(store, connection)
    minutes_pass(store, connection)
    look(store, connection)
    assert [point.available for point in told(store, connection, "default")] == [2, 2]
    assert all(point.oldest is not None for point in told(store, connection, "default"))


def test_longer_steps(store: Store, connection: Connection) -> None:
    """They add up what came, and say how much waited at the most."""
    begin(store, connection)
    for count in (1, 2, 3):
        enqueue(store, connection, count)
        look(store, connection)
        minutes_pass(store, connection)
    points = told(store, connection, step=KEPT)
    assert sum(point.appended for point in points) == 6
    assert sum(point.seconds for point in points) == 180
    assert max(point.available for point in points) == 6
    for point in points:
        assert point.at.timestamp() % (KEPT * 60) == 0


def test_jobs_that_are_not_kept(store: Store, connection: Connection) -> None:
    """They are counted as well, whether their lease is settled whole or in parts."""
    begin(store, connection)
    session, jobs = running(store, connection, 5)
    whole, other = jobs[:3], jobs[3:]
    settle(store, connection, session, *(settlement(job, Move.COMPLETE, keep=0.0) for job in whole))
    first, second = other
    settle(store, connection, session, settlement(first, Move.DISCARD, keep=0.0))
    settle(store, connection, session, settlement(second, Move.CANCEL, keep=0.0))
    session, jobs = running(store, connection, 2)
    settle(store, connection, session, *(settlement(job, Move.COMPLETE, keep=0.0) for job in jobs))
    look(store, connection)
    [point] = told(store, connection)
    assert (point.completed, point.discarded) == (5, 1)


def test_what_happens_to_jobs_after_their_end(store: Store, connection: Connection) -> None:
    """They ended, though they are retried or deleted then."""
    begin(store, connection)
    completed = in_state(store, connection, State.COMPLETED)
    discarded = in_state(store, connection, State.DISCARDED)
    connection.run(store.delete([completed.id]))
    connection.run(store.retry([discarded.id]))
    connection.run(store.squeeze())
    look(store, connection)
    [point] = told(store, connection)
    assert (point.completed, point.discarded) == (1, 1)
    minutes_pass(store, connection)
    look(store, connection)
    assert [figures(point)[2:4] for point in told(store, connection)] == [(1, 1), (0, 0)]


def test_jobs_that_a_rescue_discards(store: Store, connection: Connection) -> None:
    """They were given up as others are."""
    begin(store, connection)
    built = in_state(store, connection, State.RUNNING, timeout=0.01, max_attempts=1)
    rescued(store, connection, built.session)
    look(store, connection)
    [point] = told(store, connection)
    assert point.discarded == 1


def test_the_clock_was_set_back(store: Store, connection: Connection) -> None:
    """What was recorded of minutes to come is gone, and what came in them counts in the next one."""
    begin(store, connection)
    minutes_pass(store, connection, 39)
    enqueue(store, connection, 2)
    look(store, connection)
    minutes_pass(store, connection, -30)
    enqueue(store, connection, 1)
    assert look(store, connection)
    [point] = told(store, connection)
    assert (point.appended, point.seconds) == (3, 600)
    assert point.at < datetime.now(UTC)
    assert not look(store, connection)


def test_a_week_is_told(store: Store, connection: Connection) -> None:
    """Whoever asks for less gets less."""
    begin(store, connection)
    minutes_pass(store, connection, KEPT - 10)
    look(store, connection)
    minutes_pass(store, connection, 5)
    assert len(told(store, connection)) == 1
    minutes_pass(store, connection, KEPT)
    assert told(store, connection) == []
