"""Handing out jobs: in which order, to which worker, and never twice."""

import threading
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from rota.errors import LeaseLost
from rota.model.job import ClaimedJob, JobId, SessionId
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    close_to,
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
from tests.store.keying import fair


def test_a_claimed_job_says_what_a_worker_needs(store: Store, connection: Connection) -> None:
    """Everything about the job, its first attempt, and a lease."""
    session = open_session(store, connection)
    [job] = enqueue(store, connection, queue="mail", priority=3, max_attempts=9, timeout=1.5)
    [claimed] = claim(store, connection, session, queues=("mail",))
    assert claimed.lease
    assert claimed == ClaimedJob(
        job, claimed.lease, "shop.send", '{"number":0}', "mail", 3, 1, 9, 1.5, claimed.enqueued_at
    )
    assert close_to(datetime.fromtimestamp(claimed.enqueued_at, UTC), datetime.now(UTC))


def test_a_claimed_job_is_running(store: Store, connection: Connection) -> None:
    """A lookup shows which worker runs the job."""
    [job] = enqueue(store, connection)
    claim(store, connection, open_session(store, connection))
    found = record(store, connection, job)
    assert (found.state, found.attempt) == (State.RUNNING, 1)
    assert found.worker is not None
    assert "alpha" in found.worker
    assert "4711" in found.worker


def test_first_enqueued_first_claimed(store: Store, connection: Connection) -> None:
    """Jobs of a queue and priority come in the order in which they were stored."""
    jobs = enqueue(store, connection, 5) + enqueue(store, connection, 5)
    session = open_session(store, connection)
    got = [job.id for _ in range(4) for job in claim(store, connection, session, 3)]
    assert got == jobs


def test_smaller_priorities_come_first(store: Store, connection: Connection) -> None:
    """A smaller number is more urgent, whenever it was stored."""
    plain = enqueue(store, connection, 2)
    late = enqueue(store, connection, 2, priority=10)
    urgent = enqueue(store, connection, 2, priority=-10)
    session = open_session(store, connection)
    assert [job.id for job in claim(store, connection, session, 3)] == [*urgent, plain[0]]
    assert [job.id for job in claim(store, connection, session, 10)] == [plain[1], *late]


@pytest.mark.parametrize("keyed", [False, True])
def test_who_comes_first_does_not_wait_for_a_backlog(
    store: Store, connection: Connection, *, keyed: bool
) -> None:
    """The first job ever of a priority comes soon, while a worker claims and claims and finds enough."""
    enqueue(store, connection, 20_000)
    session = open_session(store, connection)

    def claimed() -> list[JobId]:
        operation = store.claim(session, ["default"], 1, woken=True)
        return [job.id for job in connection.run(operation)]

    assert claimed()
    [urgent] = (
        fair(store, connection, "a", priority=-5)
        if keyed
        else enqueue(store, connection, priority=-5)
    )
    assert until(lambda: urgent in claimed() or None)
    [queue] = connection.run(store.queues())
    assert queue.counts[State.AVAILABLE] > 0


def test_only_the_queues_asked_for(store: Store, connection: Connection) -> None:
    """A worker gets jobs of its own queues and of no others."""
    mail = enqueue(store, connection, 2, queue="mail")
    images = enqueue(store, connection, 2, queue="images")
    enqueue(store, connection, 2, queue="reports")
    session = open_session(store, connection)
    got = claim(store, connection, session, 10, ("mail", "images"))
    assert {job.id for job in got} == {*mail, *images}
    assert [job.id for job in got if job.queue == "mail"] == mail
    assert [job.id for job in got if job.queue == "images"] == images


@pytest.mark.parametrize(
    "queues", [(), ("nobody's",), ("default", "default"), ("nobody's", "default")]
)
def test_queues_that_are_missing_or_named_twice(
    store: Store, connection: Connection, queues: tuple[str, ...]
) -> None:
    """Odd lists of queues give no job twice and no error."""
    jobs = enqueue(store, connection, 3)
    session = open_session(store, connection)
    got = [job.id for job in claim(store, connection, session, 10, queues)]
    assert got == (jobs if "default" in queues else [])


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 1000])
def test_never_more_than_the_limit(store: Store, connection: Connection, limit: int) -> None:
    """A claim takes what is asked for, from several queues together."""
    enqueue(store, connection, 2, queue="a")
    enqueue(store, connection, 2, queue="b")
    session = open_session(store, connection)
    got = claim(store, connection, session, limit, ("a", "b"))
    assert len(got) == min(limit, 4)
    rest = claim(store, connection, session, 1000, ("a", "b"))
    assert len(rest) == 4 - len(got)


def test_nothing_is_claimed_twice(store: Store, connection: Connection, other: Connection) -> None:
    """What one worker has taken, no other one gets."""
    jobs = enqueue(store, connection, 4)
    one, two = open_session(store, connection), open_session(store, connection)
    assert [job.id for job in claim(store, connection, one, 2)] == jobs[:2]
    assert [job.id for job in claim(store, other, two, 10)] == jobs[2:]
    assert claim(store, connection, one) == []


def test_a_paused_queue_gives_nothing(store: Store, connection: Connection) -> None:
    """Jobs of a paused queue wait, those of others do not, until it is resumed."""
    mail = enqueue(store, connection, 2, queue="mail")
    images = enqueue(store, connection, 2, queue="images")
    connection.run(store.pause("mail"))
    session = open_session(store, connection)
    assert [job.id for job in claim(store, connection, session, 10, ("mail", "images"))] == images
    assert claim(store, connection, session, 10, ("mail",)) == []
    connection.run(store.resume("mail"))
    assert [job.id for job in claim(store, connection, session, 10, ("mail",))] == mail


def test_jobs_that_are_not_available(store: Store, connection: Connection) -> None:
    """Scheduled and cancelled jobs are not handed out."""
    [scheduled] = enqueue(store, connection, delay=600.0)
    [cancelled] = enqueue(store, connection)
    connection.run(store.cancel([cancelled]))
    [available] = enqueue(store, connection)
    session = open_session(store, connection)
    assert [job.id for job in claim(store, connection, session)] == [available]
    assert states(store, connection, [scheduled]) == [State.SCHEDULED]


def test_each_claim_has_its_own_lease(store: Store, connection: Connection) -> None:
    """The same job in the same hands again comes under another lease."""
    session, [job] = running(store, connection)
    assert settle(store, connection, session, settlement(job, Move.RELEASE)) == []
    [again] = claim(store, connection, session)
    assert again.id == job.id
    assert again.lease != job.lease
    assert again.attempt == job.attempt


@pytest.mark.parametrize("available", [False, True])
@pytest.mark.parametrize("how", ["unknown", "closed", "rescued"])
def test_a_dead_session_gets_nothing(
    store: Store,
    connection: Connection,
    how: str,
    available: bool,  # noqa: FBT001
) -> None:
    """A session that is not alive gets no job, and is told so at the latest when there is one."""
    session = open_session(store, connection, timeout=0.02)
    if how == "closed":
        connection.run(store.close_session(session))
    elif how == "rescued":
        rescued(store, connection, session)
    else:
        session = SessionId(session + 1000)
    jobs = enqueue(store, connection, 2) if available else []
    if available:
        with pytest.raises(LeaseLost):
            claim(store, connection, session)
    else:
        with suppress(LeaseLost):
            assert claim(store, connection, session) == []
    assert states(store, connection, jobs) == [State.AVAILABLE] * len(jobs)
    # The connection goes on.
    assert len(claim(store, connection, open_session(store, connection))) == len(jobs)


def test_workers_at_the_same_time(store: Store, connection: Connection) -> None:
    """Several workers empty a queue together: every job once, each worker in order."""
    jobs = enqueue(store, connection, 1000)
    start = threading.Barrier(4)
    got: list[list[ClaimedJob]] = [[] for _ in range(4)]

    def work(number: int) -> None:
        own = store.connect()
        try:
            session = open_session(store, own)
            start.wait()
            while batch := claim(store, own, session, 7):
                got[number] += batch
        finally:
            own.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(job.id for part in got for job in part) == jobs
    for part in got:
        assert [job.id for job in part] == sorted(job.id for job in part)


def test_a_long_backlog_is_claimed_to_its_end(store: Store, connection: Connection) -> None:
    """Claims in large batches reach every job, in order."""
    jobs = enqueue(store, connection, 5000)
    session = open_session(store, connection)
    got: list[JobId] = []
    while batch := claim(store, connection, session, 1999):
        got += [job.id for job in batch]
    assert got == jobs
