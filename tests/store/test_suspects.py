"""What becomes of jobs whose worker died with several in its hands: none is punished for another."""

import pytest

from rota.errors import LeaseLost
from rota.model.job import ClaimedJob, JobId, LeaseId, SessionId
from rota.model.states import Move, State
from rota.model.suspects import first_lot
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    enqueue,
    open_session,
    record,
    rescued,
    settle,
    settlement,
    states,
    until,
)

SHORT = 0.02


def died_with(store: Store, connection: Connection, jobs: list[JobId]) -> SessionId:
    """A worker has claimed these jobs, begun them, and died."""
    session = open_session(store, connection, timeout=SHORT)
    assert {job.id for job in claim(store, connection, session)} == {*jobs}
    rescue = rescued(store, connection, session)
    assert (rescue.available, rescue.discarded) == (tuple(sorted(jobs)), ())
    return session


def suspicion(jobs: list[ClaimedJob]) -> dict[JobId, tuple[int, int | None]]:
    """The attempt of each job, and how many suspects it is one of."""
    return {job.id: (job.attempt, job.suspects) for job in jobs}


def test_several_come_back_unspent(store: Store, connection: Connection) -> None:
    """No attempt is spent where several jobs were held; each says so, and is a suspect."""
    jobs = enqueue(store, connection, 3, max_attempts=1)
    died_with(store, connection, jobs)
    found = record(store, connection, jobs[0])
    assert (found.state, found.attempt) == (State.AVAILABLE, 0)
    assert [error.exception for error in found.errors] == ["rota.WorkerDied"]
    assert "while it held 3 jobs; no attempt is spent" in found.errors[0].message
    again = claim(store, connection, open_session(store, connection))
    assert suspicion(again) == dict.fromkeys(jobs, (1, 3))


def test_one_alone_is_to_blame(store: Store, connection: Connection) -> None:
    """The job that its worker held alone has spent its attempt, and stays a suspect."""
    [job] = enqueue(store, connection)
    session = open_session(store, connection, timeout=SHORT)
    [claimed] = claim(store, connection, session)
    assert claimed.suspects is None
    assert rescued(store, connection, session).blamed == job
    again = claim(store, connection, open_session(store, connection))
    assert suspicion(again) == {job: (2, 1)}


def test_suspects_that_have_not_begun(store: Store, connection: Connection) -> None:
    """They come back as they were, and do not count among those that may be to blame."""
    waiting = enqueue(store, connection, 3, max_attempts=1)
    died_with(store, connection, waiting)
    [other] = enqueue(store, connection, max_attempts=2)
    session = open_session(store, connection, timeout=SHORT)
    claim(store, connection, session)
    rescue = rescued(store, connection, session)
    assert rescue.blamed == other
    assert rescue.available == (*waiting, other)
    assert len(record(store, connection, waiting[0]).errors) == 1
    again = claim(store, connection, open_session(store, connection))
    assert suspicion(again) == {**dict.fromkeys(waiting, (1, 3)), other: (2, 1)}


def test_a_lot_that_has_begun(store: Store, connection: Connection) -> None:
    """Of many suspects, those of the lot that was running are left."""
    jobs = enqueue(store, connection, 5, max_attempts=1)
    died_with(store, connection, jobs)
    session = open_session(store, connection, timeout=SHORT)
    claim(store, connection, session)
    connection.run(store.begin_lot(session, jobs[3:]))
    connection.run(store.begin_lot(session, jobs[:2]))
    assert rescued(store, connection, session).blamed is None
    again = claim(store, connection, open_session(store, connection))
    assert suspicion(again) == {
        **dict.fromkeys(jobs[:2], (1, 2)),
        **dict.fromkeys(jobs[2:], (1, 5)),
    }


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_lot_of_one(store: Store, connection: Connection, attempts: int) -> None:
    """It is to blame for its worker's death, and is discarded if that was its last attempt."""
    jobs = enqueue(store, connection, 3, max_attempts=attempts)
    died_with(store, connection, jobs)
    session = open_session(store, connection, timeout=SHORT)
    claim(store, connection, session)
    connection.run(store.begin_lot(session, jobs[1:2]))
    rescue = rescued(store, connection, session)
    assert rescue.blamed == jobs[1]
    assert rescue.discarded == (tuple(jobs[1:2]) if attempts == 1 else ())
    found = record(store, connection, jobs[1])
    assert found.attempt == 1
    assert "died or was cut off during this attempt" in found.errors[-1].message
    assert [record(store, connection, job).attempt for job in jobs[::2]] == [0, 0]


def test_what_the_lot_has_settled(store: Store, connection: Connection) -> None:
    """Jobs of a lot that have ended are not to blame: the one that is left is."""
    jobs = enqueue(store, connection, 3)
    died_with(store, connection, jobs)
    session = open_session(store, connection, timeout=SHORT)
    claimed = claim(store, connection, session)
    connection.run(store.begin_lot(session, jobs[:2]))
    [ended] = [job for job in claimed if job.id == jobs[0]]
    assert settle(store, connection, session, settlement(ended, Move.COMPLETE)) == []
    assert rescued(store, connection, session).blamed == jobs[1]


@pytest.mark.parametrize(
    ("move", "delay", "left"),
    [
        (Move.SNOOZE, 0.0, None),
        (Move.RETRY, 0.0, None),
        (Move.AGAIN, 0.0, None),
        (Move.RELEASE, 0.0, 2),
        (Move.RELEASE, 0.01, 2),
    ],
)
def test_how_a_suspicion_ends(
    store: Store, connection: Connection, move: Move, delay: float, left: int | None
) -> None:
    """A job that has run to its end is no suspect any more; one that was given back still is."""
    jobs = enqueue(store, connection, 2)
    died_with(store, connection, jobs)
    session = open_session(store, connection)
    for job in claim(store, connection, session):
        assert settle(store, connection, session, settlement(job, move, delay=delay)) == []

    def back() -> bool | None:
        connection.run(store.stage(10))
        return states(store, connection, jobs) == [State.AVAILABLE] * 2 or None

    until(back)
    again = claim(store, connection, open_session(store, connection))
    assert [job.suspects for job in again] == [left] * 2


def test_a_dead_session_begins_nothing(store: Store, connection: Connection) -> None:
    """A worker that was declared dead is told so before suspects run."""
    jobs = enqueue(store, connection, 2)
    session = died_with(store, connection, jobs)
    with pytest.raises(LeaseLost):
        connection.run(store.begin_lot(session, jobs))


@pytest.mark.parametrize(
    ("suspects", "first"),
    [([500] * 100, 62), ([62] * 62, 7), ([7] * 7, 1), ([1] * 3, 1), ([16] * 2 + [9] * 5, 2)],
)
def test_lots(suspects: list[int], first: int) -> None:
    """A lot is an eighth of those that died together, at least one, and never of two deaths."""
    jobs = [
        ClaimedJob(
            JobId(number), LeaseId(1), "shop.send", "{}", "default", 0, 1, 5, None, 0.0, suspect
        )
        for number, suspect in enumerate(suspects)
    ]
    assert first_lot(jobs) == jobs[:first]
