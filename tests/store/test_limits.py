"""Limits: at most so many jobs of a key at once, or so many starts in a time, exactly."""

from collections import Counter
from itertools import chain

import pytest
from msgspec.structs import replace

from rota import Limit, Unique
from rota.model.job import ClaimedJob, JobId, Keys, Order, SessionId
from rota.model.limit import MOST
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    enqueue,
    open_session,
    record,
    rescued,
    run_inside,
    settle,
    settlement,
    spec_of,
    states,
    until,
)
from tests.store.keying import keys_of, limited

ONE = Limit(key="{key}", running=1)


def available(store: Store, connection: Connection, queue: str = "default") -> bool:
    """Whether an idle worker is told that there is something to claim."""
    return connection.run(store.look([queue])).available


def test_so_many_of_a_key_run_at_once(store: Store, connection: Connection) -> None:
    """The others wait, and start when one has ended, in their order."""
    jobs = limited(store, connection, "aaaa")
    session = open_session(store, connection)
    first = claim(store, connection, session)
    assert [job.id for job in first] == jobs[:2]
    assert all(job.limited for job in first)
    assert claim(store, connection, session) == []
    assert settle(store, connection, session, settlement(first[1], Move.COMPLETE)) == []
    [third] = claim(store, connection, session)
    assert third.id == jobs[2]
    assert settle(store, connection, session, settlement(first[0], Move.COMPLETE)) == []
    assert settle(store, connection, session, settlement(third, Move.COMPLETE)) == []
    assert [job.id for job in claim(store, connection, session)] == jobs[3:]


def test_who_waits_blocks_nobody(store: Store, connection: Connection) -> None:
    """Jobs of other keys, and those without one, pass a job that waits for its limit."""
    waiting = limited(store, connection, "aaaaaa")[2:]
    other = limited(store, connection, "b")
    plain = enqueue(store, connection, 2)
    session = open_session(store, connection)
    got = [job.id for job in claim(store, connection, session)]
    assert not set(got) & set(waiting)
    assert set(got) >= {*other, *plain}
    assert len(got) == 5
    assert set(states(store, connection, waiting)) == {State.AVAILABLE}


def test_an_idle_worker_is_not_woken_for_what_waits(store: Store, connection: Connection) -> None:
    """Nothing is to be claimed while the limits have no place, and something as soon as one has."""
    limited(store, connection, "ab" * 3)
    session = open_session(store, connection)
    assert available(store, connection)
    held = claim(store, connection, session)
    assert not available(store, connection)
    settle(store, connection, session, settlement(held[0], Move.COMPLETE))
    assert available(store, connection)


def test_with_one_place_jobs_run_in_their_order(store: Store, connection: Connection) -> None:
    """Each starts after the one before it has ended."""
    jobs = limited(store, connection, "aaaaa", ONE)
    session = open_session(store, connection)
    order: list[JobId] = []
    while found := claim(store, connection, session):
        [job] = found
        order.append(job.id)
        settle(store, connection, session, settlement(job, Move.COMPLETE))
    assert order == jobs


def test_one_limit_over_queues_and_priorities(store: Store, connection: Connection) -> None:
    """All jobs with the same key share the limit, whatever their task, queue and priority."""
    limited(store, connection, "aa", queue="mail", task="shop.one")
    limited(store, connection, "aa", queue="mail", priority=5, task="shop.two")
    limited(store, connection, "aa", queue="images")
    session = open_session(store, connection)
    for queues in (("mail",), ("images",), ("images", "mail")):
        got = claim(store, connection, session, 100, queues)
        assert len(got) == (2 if queues == ("mail",) else 0)
    assert not available(store, connection, "images")


def test_a_place_that_two_priorities_share(store: Store, connection: Connection) -> None:
    """A key's lane without a place of its own takes no room in a claim from others' that have one."""
    session = open_session(store, connection)
    later = limited(store, connection, "b", ONE, priority=5)
    [served] = claim(store, connection, session)
    assert settle(store, connection, session, settlement(served, Move.RELEASE)) == []
    first = limited(store, connection, "a", ONE)
    limited(store, connection, "a", ONE, priority=5)
    assert [job.id for job in claim(store, connection, session, 2)] == [*first, *later]


@pytest.mark.parametrize(
    "move", [Move.COMPLETE, Move.DISCARD, Move.CANCEL, Move.RETRY, Move.SNOOZE, Move.RELEASE]
)
def test_every_way_out_frees_the_place(store: Store, connection: Connection, move: Move) -> None:
    """However a job ends, or leaves for later, one has its place, and only one."""
    limited(store, connection, "aa", ONE)
    session = open_session(store, connection)
    [held] = claim(store, connection, session)
    delay = 0.0 if move is Move.RELEASE else 600.0
    settle(store, connection, session, settlement(held, move, delay=delay))
    assert len(claim(store, connection, session)) == 1
    assert claim(store, connection, session) == []


def test_a_place_of_each_key_is_freed_by_its_own_job(store: Store, connection: Connection) -> None:
    """Of a claim with many keys any part can be settled."""
    limited(store, connection, "abcdef" * 2, ONE)
    session = open_session(store, connection)
    held = {key: job for job in claim(store, connection, session) for key in keys_of([job])}
    assert sorted(held) == list("abcdef")
    for part in ("c", "fa", "bde"):
        settle(store, connection, session, *(settlement(held[key], Move.COMPLETE) for key in part))
        assert sorted(keys_of(claim(store, connection, session))) == sorted(part)


def test_the_last_place_is_told(store: Store, connection: Connection) -> None:
    """The job that takes it, and no other, names the limit: of places, of a rate, or of both."""
    limited(store, connection, "aaab")
    limited(store, connection, "cc", Limit(key="{key}", per_hour=1))
    limited(store, connection, "ddd", Limit(key="{key}", running=2, per_hour=3))
    session = open_session(store, connection)
    got = claim(store, connection, session, 100)
    told = [(job.args.strip('"'), job.filled) for job in got]
    assert Counter(told) == Counter(
        [("a", None), ("a", "a"), ("b", None), ("c", "c"), ("d", None), ("d", "d")]
    )
    settle(store, connection, session, *(settlement(job, Move.COMPLETE) for job in got))
    again = claim(store, connection, session, 100)
    assert [(job.args.strip('"'), job.filled) for job in again] == [("a", None), ("d", "d")]


def test_a_share_that_is_not_needed_is_for_others(store: Store, connection: Connection) -> None:
    """A claim that is wide enough takes all that may run, however the lanes differ."""
    limited(store, connection, "a" * 40 + "bcd", Limit(key="{key}", running=30))
    session = open_session(store, connection)
    assert Counter(keys_of(claim(store, connection, session, 40))) == {
        "a": 30, "b": 1, "c": 1, "d": 1
    }  # fmt: skip


@pytest.mark.parametrize("how", ["rescue", "close", "release"])
def test_a_lost_holder_frees_its_places(store: Store, connection: Connection, how: str) -> None:
    """A worker that dies, ends or does not know of its lease keeps no place."""
    limited(store, connection, "aaaa")
    lost = open_session(store, connection, timeout=0.02)
    assert len(claim(store, connection, lost)) == 2
    session = open_session(store, connection)
    assert claim(store, connection, session) == []
    if how == "rescue":
        rescued(store, connection, lost)
    elif how == "close":
        connection.run(store.close_session(lost))
    else:
        connection.run(store.release(lost, []))
    assert len(claim(store, connection, session)) == 2
    assert claim(store, connection, session) == []


def test_the_code_says_the_numbers(store: Store, connection: Connection) -> None:
    """An enqueue with other numbers changes the limit for all jobs that wait."""
    limited(store, connection, "aaaaaa", ONE)
    session = open_session(store, connection)
    assert len(claim(store, connection, session)) == 1
    limited(store, connection, "a", Limit(key="{key}", running=3))
    assert len(claim(store, connection, session)) == 2
    limited(store, connection, "a", ONE)
    assert claim(store, connection, session) == []


def test_the_highest_numbers(store: Store, connection: Connection) -> None:
    """Each database holds them, and counts with them."""
    limited(store, connection, "aa", Limit(key="{key}", running=MOST, per_hour=MOST))
    session = open_session(store, connection)
    assert len(claim(store, connection, session, 1)) == 1
    assert len(claim(store, connection, session)) == 1


def test_a_rate(store: Store, connection: Connection) -> None:
    """So many start in a time, even if all have ended; others are not concerned."""
    hourly = Limit(key="{key}", per_hour=3)
    limited(store, connection, "aaaaabb", hourly)
    session = open_session(store, connection)
    got = claim(store, connection, session, 2)
    got += claim(store, connection, session)
    assert Counter(keys_of(got)) == {"a": 3, "b": 2}
    settle(store, connection, session, *(settlement(job, Move.COMPLETE) for job in got))
    assert claim(store, connection, session) == []
    assert not available(store, connection)


def test_a_rate_goes_on(store: Store, connection: Connection) -> None:
    """As soon as the window has passed, the next ones start."""
    jobs = limited(store, connection, "aaaaa", Limit(key="{key}", per_second=2))
    session = open_session(store, connection)
    got = [job.id for job in claim(store, connection, session)]
    assert got == jobs[:2]
    assert claim(store, connection, session) == []
    while len(got) < 4:
        got += until(lambda: [job.id for job in claim(store, connection, session)] or None)
    assert got == jobs[:4]


def test_a_rate_and_places(store: Store, connection: Connection) -> None:
    """Both hold at once."""
    limited(store, connection, "aaaaaa", Limit(key="{key}", running=2, per_hour=3))
    session = open_session(store, connection)
    held = claim(store, connection, session)
    assert len(held) == 2
    settle(store, connection, session, *(settlement(job, Move.COMPLETE) for job in held))
    assert len(claim(store, connection, session)) == 1
    assert claim(store, connection, session) == []


def test_a_job_that_is_given_back_has_spent_its_start(store: Store, connection: Connection) -> None:
    """A start counts when the job is handed out, whatever becomes of it."""
    limited(store, connection, "aaa", Limit(key="{key}", per_hour=2))
    session = open_session(store, connection)
    [held] = claim(store, connection, session, 1)
    settle(store, connection, session, settlement(held, Move.RELEASE))
    assert len(claim(store, connection, session)) == 1
    assert claim(store, connection, session) == []


def test_retries_come_back_under_their_limit(store: Store, connection: Connection) -> None:
    """From the timer, and from the finished ones by hand."""
    jobs = limited(store, connection, "aaa", ONE)
    session = open_session(store, connection)
    [held] = claim(store, connection, session)
    settle(store, connection, session, settlement(held, Move.RETRY, delay=600.0))
    [held] = claim(store, connection, session)
    settle(store, connection, session, settlement(held, Move.DISCARD))
    assert sorted(connection.run(store.retry(jobs[:2]))) == jobs[:2]
    seen = []
    for _ in jobs:
        [held] = claim(store, connection, session)
        assert claim(store, connection, session) == []
        seen.append(held.id)
        settle(store, connection, session, settlement(held, Move.COMPLETE))
    assert sorted(seen) == jobs


def test_delayed_jobs_come_under_their_limit(store: Store, connection: Connection) -> None:
    """When their time comes they wait for a place like others."""
    limited(store, connection, "aaaa", delay=0.001)
    until(lambda: connection.run(store.stage(100)).staged or None)
    until(lambda: connection.run(store.stage(100)).next_due is None or None)
    session = open_session(store, connection)
    assert len(claim(store, connection, session)) == 2
    assert claim(store, connection, session) == []


def test_acting_by_hand(store: Store, connection: Connection) -> None:
    """Waiting jobs are cancelled and deleted like others, and the counts are exact."""
    jobs = limited(store, connection, "aaaaa", ONE)
    session = open_session(store, connection)
    [held] = claim(store, connection, session)
    assert connection.run(store.cancel([jobs[1]])) == {jobs[1]: State.CANCELLED}
    assert connection.run(store.delete([jobs[2]])) == [jobs[2]]
    settle(store, connection, session, settlement(held, Move.COMPLETE))
    [queue] = connection.run(store.queues())
    assert queue.counts == {State.AVAILABLE: 2, State.COMPLETED: 1, State.CANCELLED: 1}
    [held] = claim(store, connection, session)
    assert held.id == jobs[3]
    assert record(store, connection, jobs[4]).queue == "default"
    [queue] = connection.run(store.queues())
    assert queue.counts == {
        State.AVAILABLE: 1, State.RUNNING: 1, State.COMPLETED: 1, State.CANCELLED: 1
    }  # fmt: skip


def test_a_paused_queue(store: Store, connection: Connection) -> None:
    """A pause holds for jobs with a limit, too."""
    jobs = limited(store, connection, "ab")
    session = open_session(store, connection)
    connection.run(store.pause("default"))
    assert claim(store, connection, session) == []
    connection.run(store.resume("default"))
    assert len(claim(store, connection, session)) == len(jobs)


def test_plain_and_limited_jobs_share_a_priority(store: Store, connection: Connection) -> None:
    """Neither a backlog of the one kind nor of the other keeps the others from starting."""
    enqueue(store, connection, 200)
    limited(store, connection, [str(number) for number in range(200)])
    session = open_session(store, connection)
    got = list(chain.from_iterable(claim(store, connection, session, 10) for _ in range(10)))
    assert len(got) == 100
    assert sum(job.limited for job in got) == 50


def test_a_plain_job_beside_a_backlog_of_keys(store: Store, connection: Connection) -> None:
    """It starts while the backlog lasts, also where for a while there was none like it."""
    limited(store, connection, [str(number) for number in range(2000)])
    session = open_session(store, connection)
    for _ in range(5):
        assert all(job.limited for job in claim(store, connection, session, 10))
    [plain] = enqueue(store, connection)
    while plain not in (got := [job.id for job in again(store, connection, session)]):
        assert got, "the backlog ended before it"


def again(store: Store, connection: Connection, session: SessionId) -> list[ClaimedJob]:
    """What a claim gives that knows that there is something."""
    return connection.run(store.claim(session, ("default",), 1, woken=True))


def test_priorities_come_first(store: Store, connection: Connection) -> None:
    """A limit changes nothing about the order of priorities."""
    late = limited(store, connection, "ab", priority=5)
    plain = enqueue(store, connection, 2)
    urgent = limited(store, connection, "cd", priority=-5)
    session = open_session(store, connection)
    got = [job.id for job in claim(store, connection, session, 100)]
    assert set(got[:2]) == set(urgent)
    assert got[2:4] == plain
    assert set(got[4:]) == set(late)


def test_a_transaction_that_is_rolled_back(store: Store, connection: Connection) -> None:
    """Its jobs take no place and leave nothing in the way."""
    limited(store, connection, "a")
    operation = store.enqueue(Order(spec_of(limit=ONE), ["{}"] * 2, Keys(limit=["a", "new"])))
    transaction = store.transaction()
    run_inside(store, transaction, operation)
    transaction.rollback()
    jobs = limited(store, connection, ["new"])
    session = open_session(store, connection)
    assert len(claim(store, connection, session)) == 2
    assert states(store, connection, jobs) == [State.RUNNING]


def test_many_keys(store: Store, connection: Connection) -> None:
    """All of a thousand keys get their places, none more, claim by claim."""
    keys = [f"tenant {number}" for number in range(1000)]
    limited(store, connection, keys * 3)
    session = open_session(store, connection)
    got: list[str] = []
    while found := claim(store, connection, session, 300):
        got += keys_of(found)
    assert Counter(got) == dict.fromkeys(keys, 2)


def test_unique_jobs_with_a_limit(store: Store, connection: Connection) -> None:
    """One that waits for its limit can be replaced; void entries take no place for long."""
    unique = Unique(key="{number}", on_conflict="replace")
    spec = spec_of(unique=unique, limit=ONE)

    def put(*numbers: str) -> list[JobId]:
        keys = Keys(unique=numbers, limit=["a"] * len(numbers))
        args = [f'"{number}"' for number in numbers]
        placed = connection.run(store.enqueue(Order(spec, args, keys))).placed
        return [one.job for one in placed]

    jobs = put("1", "2", "3")
    session = open_session(store, connection)
    [first] = claim(store, connection, session)
    assert (first.id, first.unique_key, first.limited) == (jobs[0], "1", True)
    assert put("2", "3", "2") == [jobs[1], jobs[2], jobs[1]]
    assert claim(store, connection, session) == []
    seen = []
    held = first
    for _ in range(2):
        settle(store, connection, session, settlement(held, Move.COMPLETE))
        [held] = until(lambda: claim(store, connection, session) or None)
        assert claim(store, connection, session) == []
        seen.append(held.id)
    settle(store, connection, session, settlement(held, Move.COMPLETE))
    assert sorted(seen) == jobs[1:]
    assert claim(store, connection, session) == []
    [queue] = connection.run(store.queues())
    assert queue.counts == {State.COMPLETED: 3}


def test_a_job_that_its_own_transaction_completes(store: Store, connection: Connection) -> None:
    """It keeps its place while its lease is a lease of its own, and so do the others of its claim."""
    limited(store, connection, "aaaabb")
    session = open_session(store, connection)
    held = claim(store, connection, session)
    assert sorted(keys_of(held)) == ["a", "a", "b", "b"]
    one = next(job for job in held if keys_of([job]) == ["a"])
    lease = connection.run(store.single_out(session, one.id, one.lease))
    assert lease is not None
    assert claim(store, connection, session) == []
    moved = replace(one, lease=lease)
    assert settle(store, connection, session, settlement(moved, Move.COMPLETE)) == []
    assert keys_of(claim(store, connection, session)) == ["a"]
    rest = [job for job in held if job is not one]
    assert (
        settle(store, connection, session, *(settlement(job, Move.COMPLETE) for job in rest)) == []
    )
    assert keys_of(claim(store, connection, session)) == ["a"]
