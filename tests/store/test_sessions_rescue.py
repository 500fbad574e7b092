"""Workers' sessions, and what happens to jobs whose worker dies."""

import threading
from importlib import import_module

import pytest

from rota import WorkerDied
from rota.model.job import Renewal, Rescue, SessionId, SessionInfo
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    enqueue,
    open_session,
    record,
    rescued,
    running,
    settle,
    settlement,
    states,
    until,
)

SHORT = 0.02


def test_each_session_is_its_own(store: Store, connection: Connection) -> None:
    """The same worker that registers twice has two sessions."""
    assert open_session(store, connection) != open_session(store, connection)


def test_a_live_session_is_renewed(store: Store, connection: Connection) -> None:
    """A worker that renews in time learns that there are no requests."""
    session, _ = running(store, connection)
    renewal = connection.run(store.renew(session))
    assert renewal.alive
    assert not renewal.cancel


def test_a_renewal_names_only_its_own_cancelled_jobs(store: Store, connection: Connection) -> None:
    """Each worker learns about its own jobs, for as long as they run."""
    one, mine = running(store, connection, 3)
    two, others = running(store, connection, 1)
    connection.run(store.cancel([mine[0].id, mine[2].id, others[0].id]))
    assert connection.run(store.renew(one)).cancel == {mine[0].id, mine[2].id}
    assert connection.run(store.renew(two)).cancel == {others[0].id}
    settle(store, connection, one, settlement(mine[0], Move.CANCEL))
    assert connection.run(store.renew(one)).cancel == {mine[2].id}


@pytest.mark.parametrize("how", ["unknown", "closed", "rescued"])
def test_a_dead_session_cannot_be_renewed(store: Store, connection: Connection, how: str) -> None:
    """A worker learns that its session is gone, and cannot bring it back."""
    session = open_session(store, connection, timeout=SHORT)
    if how == "closed":
        connection.run(store.close_session(session))
    elif how == "rescued":
        rescued(store, connection, session)
    else:
        session = SessionId(session + 1000)
    for _ in range(2):
        assert connection.run(store.renew(session)) == Renewal(alive=False)


def test_closing_gives_the_jobs_back_unspent(store: Store, connection: Connection) -> None:
    """A worker that ends in order leaves its jobs to others, as if it had never had them."""
    session, jobs = running(store, connection, 2)
    _, [elsewhere] = running(store, connection)
    connection.run(store.close_session(session))
    assert states(store, connection, [job.id for job in jobs]) == [State.AVAILABLE] * 2
    assert states(store, connection, [elsewhere.id]) == [State.RUNNING]
    found = record(store, connection, jobs[0].id)
    assert (found.attempt, found.errors, found.worker) == (0, (), None)
    again = claim(store, connection, open_session(store, connection))
    assert {(job.id, job.attempt) for job in again} == {(job.id, 1) for job in jobs}
    refused = settle(store, connection, session, settlement(jobs[0], Move.COMPLETE))
    assert refused == [jobs[0].id]


def test_closing_cancels_what_nobody_wants(store: Store, connection: Connection) -> None:
    """A job that was asked to stop does not come back when its worker ends."""
    session, [job] = running(store, connection)
    connection.run(store.cancel([job.id]))
    connection.run(store.close_session(session))
    assert states(store, connection, [job.id]) == [State.CANCELLED]


def test_closing_twice_or_a_stranger(store: Store, connection: Connection) -> None:
    """A session that has ended or never was can be closed without harm."""
    session, [job] = running(store, connection)
    connection.run(store.close_session(SessionId(session + 1000)))
    assert states(store, connection, [job.id]) == [State.RUNNING]
    connection.run(store.close_session(session))
    [again] = claim(store, connection, open_session(store, connection))
    connection.run(store.close_session(session))
    assert states(store, connection, [again.id]) == [State.RUNNING]


def test_the_living_are_not_rescued(store: Store, connection: Connection) -> None:
    """A rescue leaves sessions within their timeout alone."""
    session, [job] = running(store, connection)
    assert connection.run(store.rescue()) == []
    assert states(store, connection, [job.id]) == [State.RUNNING]
    assert connection.run(store.renew(session)).alive


def test_a_rescue_takes_jobs_back(store: Store, connection: Connection, other: Connection) -> None:
    """The jobs of a dead worker are available again; several of them are not to blame."""
    session = open_session(store, connection, timeout=SHORT)
    jobs = enqueue(store, connection, 3)
    claimed = claim(store, connection, session)
    settle(store, connection, session, settlement(claimed[0], Move.COMPLETE))
    rescue = rescued(store, other, session)
    assert sorted(rescue.available) == jobs[1:]
    assert (rescue.session, rescue.discarded) == (session, ())
    assert "alpha" in rescue.worker
    assert states(store, connection, jobs) == [
        State.COMPLETED,
        State.AVAILABLE,
        State.AVAILABLE,
    ]
    found = record(store, connection, jobs[1])
    assert (found.attempt, found.worker) == (0, None)
    again = claim(store, other, open_session(store, other))
    assert {(job.id, job.attempt) for job in again} == {(job, 1) for job in jobs[1:]}
    assert not {job.lease for job in again} & {job.lease for job in claimed}


def test_a_session_is_rescued_once(store: Store, connection: Connection) -> None:
    """What was taken back is not taken back again."""
    session = open_session(store, connection, timeout=SHORT)
    enqueue(store, connection)
    claim(store, connection, session)
    rescued(store, connection, session)
    assert connection.run(store.rescue()) == []


def test_a_job_that_kills_its_workers_is_discarded(store: Store, connection: Connection) -> None:
    """A job whose every attempt took its worker down is given up, and says why."""
    [job] = enqueue(store, connection, max_attempts=2)
    for attempt in (1, 2):
        session = open_session(store, connection, timeout=SHORT)
        [claimed] = claim(store, connection, session)
        assert claimed.attempt == attempt
        if claimed.suspects:
            connection.run(store.begin_lot(session, [job]))
        rescue = rescued(store, connection, session)
        assert rescue.available == ((job,) if attempt == 1 else ())
        assert rescue.discarded == ((job,) if attempt == 2 else ())
    found = record(store, connection, job)
    assert (found.state, found.attempt) == (State.DISCARDED, 2)
    assert found.finished_at is not None
    assert found.errors[-1].attempt == 2
    assert "worker" in found.errors[-1].message
    assert "died" in found.errors[-1].message
    module, _, name = found.errors[-1].exception.rpartition(".")
    assert getattr(import_module(module), name) is WorkerDied
    assert claim(store, connection, open_session(store, connection)) == []


def test_a_rescue_after_a_failed_attempt(store: Store, connection: Connection) -> None:
    """Failures and deaths count together, and their errors stand in their order."""
    session = open_session(store, connection, timeout=SHORT)
    [job] = enqueue(store, connection, max_attempts=2)
    [claimed] = claim(store, connection, session)
    settle(store, connection, session, settlement(claimed, Move.RETRY))
    connection.run(store.stage(10))
    claim(store, connection, session)
    assert rescued(store, connection, session).discarded == (job,)
    errors = record(store, connection, job).errors
    assert [error.attempt for error in errors] == [1, 2]
    assert errors[0].message == "no luck 1"


@pytest.mark.parametrize("attempts", [1, 5])
def test_a_rescue_cancels_what_nobody_wants(
    store: Store, connection: Connection, attempts: int
) -> None:
    """A job that was asked to stop is cancelled when its worker dies, not run again."""
    session = open_session(store, connection, timeout=SHORT)
    [job] = enqueue(store, connection, max_attempts=attempts)
    claim(store, connection, session)
    connection.run(store.cancel([job]))
    rescue = rescued(store, connection, session)
    assert (rescue.available, rescue.discarded) == ((), ())
    assert states(store, connection, [job]) == [State.CANCELLED]


def test_only_the_dead_are_rescued(store: Store, connection: Connection) -> None:
    """One rescue tells the dead sessions from the living ones, and each from the others."""
    alive, [kept] = running(store, connection)
    dead = {}
    for _ in range(2):
        session = open_session(store, connection, timeout=SHORT)
        dead[session] = enqueue(store, connection, 2)
        claim(store, connection, session)
    found: dict[SessionId, Rescue] = {}

    def look() -> bool | None:
        found.update({rescue.session: rescue for rescue in connection.run(store.rescue())})
        return True if len(found) >= len(dead) else None

    until(look)
    assert {session: sorted(rescue.available) for session, rescue in found.items()} == dead
    assert states(store, connection, [kept.id]) == [State.RUNNING]
    assert (
        states(store, connection, [job for jobs in dead.values() for job in jobs])
        == [State.AVAILABLE] * 4
    )
    assert connection.run(store.renew(alive)).alive


def test_two_rescuers(store: Store, connection: Connection) -> None:
    """Workers that rescue at the same time report each dead session once between them."""
    dead = set()
    for _ in range(5):
        session = open_session(store, connection, timeout=SHORT)
        enqueue(store, connection, 10)
        claim(store, connection, session, 10)
        dead.add(session)
    found: list[Rescue] = []
    start = threading.Barrier(3)

    def rescue() -> None:
        own = store.connect()
        try:
            start.wait()
            while len(found) < len(dead):
                rescues = own.run(store.rescue())
                found.extend(rescues)
        finally:
            own.close()

    threads = [threading.Thread(target=rescue, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(rescue.session for rescue in found) == sorted(dead)
    jobs = [job for rescue in found for job in rescue.available]
    assert len(jobs) == len(set(jobs)) == 50


def test_a_session_tells_who_it_is(store: Store, connection: Connection) -> None:
    """Odd hosts and queue names are stored as they are."""
    info = SessionInfo(host="h'ö\"st%s", pid=2**31 - 1, queues=("a'b", "%s"), timeout=SHORT)
    session = connection.run(store.open_session(info))
    assert "h'ö\"st%s" in rescued(store, connection, session).worker


@pytest.mark.parametrize("first", ["settle", "rescue"])
def test_settling_and_rescuing_meet(
    store: Store, connection: Connection, other: Connection, first: str
) -> None:
    """Of a settlement and a rescue of the same run exactly one counts, whichever comes first."""
    session = open_session(store, connection, timeout=SHORT)
    [job] = enqueue(store, connection)
    [claimed] = claim(store, connection, session)
    if first == "settle":
        assert settle(store, connection, session, settlement(claimed, Move.COMPLETE)) == []
        assert rescued(store, other, session).available == ()
        assert states(store, connection, [job]) == [State.COMPLETED]
    else:
        assert rescued(store, other, session).available == (job,)
        assert settle(store, connection, session, settlement(claimed, Move.COMPLETE)) == [job]
        assert states(store, connection, [job]) == [State.AVAILABLE]


def test_settling_and_rescuing_race(store: Store, connection: Connection) -> None:
    """However a settlement and a rescue interleave, every job has one end."""
    session = open_session(store, connection, timeout=SHORT)
    jobs = enqueue(store, connection, 200)
    claimed = claim(store, connection, session, 200)
    rescue: list[Rescue] = []
    start = threading.Barrier(2)

    def save() -> None:
        own = store.connect()
        try:
            start.wait()
            rescue.append(rescued(store, own, session))
        finally:
            own.close()

    thread = threading.Thread(target=save)
    thread.start()
    start.wait()
    refused = set()
    for job in claimed:
        refused.update(settle(store, connection, session, settlement(job, Move.COMPLETE)))
    thread.join()
    assert {*rescue[0].available} == refused
    expected = [State.AVAILABLE if job in refused else State.COMPLETED for job in jobs]
    assert states(store, connection, jobs) == expected


def test_release(store: Store, connection: Connection) -> None:
    """Leases that a session does not know of go back unspent; those it names stay."""
    session = open_session(store, connection)
    known, lost, done = enqueue(store, connection, 3)
    [held] = claim(store, connection, session, 1)
    [unknown] = claim(store, connection, session, 1)
    [ended] = claim(store, connection, session, 1)
    settle(store, connection, session, settlement(ended, Move.COMPLETE))
    assert connection.run(store.release(session, [held.lease])) == [lost]
    assert states(store, connection, [known, lost, done]) == [
        State.RUNNING,
        State.AVAILABLE,
        State.COMPLETED,
    ]
    assert settle(store, connection, session, settlement(unknown, Move.COMPLETE)) == [lost]
    [again] = claim(store, connection, session, 5)
    assert (again.id, again.attempt) == (lost, 1)
    assert connection.run(store.release(session, [held.lease, again.lease])) == []
