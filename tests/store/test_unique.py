"""Unique jobs: one of a key at a time, and what becomes of a second one."""

import threading
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import JobExists, Unique
from rota.model.enqueued import Placed, Placing
from rota.model.job import ClaimedJob, JobFilter, JobId, Keys, Order
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    close_to,
    open_session,
    record,
    rescued,
    retry_discarded,
    run_inside,
    settle,
    settlement,
    spec_of,
    states,
    until,
)

CREATED, REPLACED, SKIPPED = Placing.CREATED, Placing.REPLACED, Placing.SKIPPED
REPLACE = Unique(on_conflict="replace")
WHILE_WAITING = Unique(while_=("waiting",))
HOUR = 3600.0


def place(
    store: Store, connection: Connection, *keys: str, unique: Unique | None = None, **options: Any
) -> list[Placed]:
    """Enqueue a job for each key; the args of the first are {"number": 0}, or from `first` on."""
    first = options.pop("first", 0)
    args = [f'{{"number":{first + number}}}' for number in range(len(keys))]
    spec = spec_of(unique=unique or Unique(), **options)
    return connection.run(store.enqueue(Order(spec, args, Keys(unique=keys)))).placed


def placings(placed: Sequence[Placed]) -> list[Placing]:
    """What became of each."""
    return [answer.placing for answer in placed]


def counts(store: Store, connection: Connection) -> dict[State, int]:
    """The counts of the one queue, which must be those of a census."""
    [queue] = connection.run(store.queues())
    return dict(queue.counts)


def run_one(store: Store, connection: Connection) -> tuple[Any, ClaimedJob]:
    """Claim the one job that is available."""
    session = open_session(store, connection)
    [job] = claim(store, connection, session)
    return session, job


# Skip --------------------------------------------------------------------------------------------


def test_a_second_one_is_skipped(store: Store, connection: Connection) -> None:
    """The answer is the job that is there, waiting or running, and it stays as it is."""
    [first] = place(store, connection, "a")
    assert first.placing is CREATED
    assert place(store, connection, "a", first=7) == [Placed(first.job, SKIPPED)]
    assert counts(store, connection) == {State.AVAILABLE: 1}
    _, job = run_one(store, connection)
    assert (job.id, job.args, job.unique_key) == (first.job, '{"number":0}', "a")
    assert place(store, connection, "a", first=8) == [Placed(first.job, SKIPPED)]
    assert record(store, connection, first.job).unique_key == "a"


@pytest.mark.parametrize("move", [Move.COMPLETE, Move.DISCARD, Move.CANCEL])
@pytest.mark.parametrize("keep", [0.0, HOUR])
def test_the_end_frees_the_key(
    store: Store, connection: Connection, move: Move, keep: float
) -> None:
    """However a job ends, and whether it is kept or not, its key is free."""
    [first] = place(store, connection, "a")
    session, job = run_one(store, connection)
    assert settle(store, connection, session, settlement(job, move, keep=keep)) == []
    [second] = place(store, connection, "a")
    assert second.placing is CREATED
    assert second.job != first.job


@pytest.mark.parametrize("move", [Move.RETRY, Move.SNOOZE, Move.RELEASE, Move.AGAIN])
@pytest.mark.parametrize("delay", [0.0, HOUR])
def test_waiting_again_keeps_the_key(
    store: Store, connection: Connection, move: Move, delay: float
) -> None:
    """A job that will run again has its key still, and once it has ended nothing is left of it."""
    [first] = place(store, connection, "a")
    session, job = run_one(store, connection)
    assert settle(store, connection, session, settlement(job, move, delay=delay)) == []
    assert place(store, connection, "a") == [Placed(first.job, SKIPPED)]
    connection.run(store.retry([first.job]))
    session, job = run_one(store, connection)
    assert job.unique_key == "a"
    assert settle(store, connection, session, settlement(job, Move.COMPLETE)) == []
    assert placings(place(store, connection, "a")) == [CREATED]


def test_other_tasks_have_other_keys(store: Store, connection: Connection) -> None:
    """Keys are unique within a task."""
    place(store, connection, "a")
    assert placings(place(store, connection, "a", task="shop.other")) == [CREATED]


def test_without_unique_keys_nothing_is_unique(store: Store, connection: Connection) -> None:
    """Keys of a limit are no unique keys."""
    spec = spec_of()
    placed = connection.run(store.enqueue(Order(spec, ["{}", "{}"], Keys(limit=["a", "a"])))).placed
    assert placings(placed) == [CREATED, CREATED]


def test_many_at_once(store: Store, connection: Connection) -> None:
    """`enqueue_many` says of each what became of it; of several with one key the first counts."""
    [b] = place(store, connection, "b")
    placed = place(store, connection, "d", "a", "b", "a", "c", first=1)
    assert placings(placed) == [CREATED, CREATED, SKIPPED, SKIPPED, CREATED]
    assert placed[2].job == b.job
    assert placed[3].job == placed[1].job
    session = open_session(store, connection)
    found = claim(store, connection, session)
    # In the order of the args, not of the keys.
    assert [(job.unique_key, job.args) for job in found] == [
        ("b", '{"number":0}'), ("d", '{"number":1}'), ("a", '{"number":2}'), ("c", '{"number":5}'),
    ]  # fmt: skip


def test_more_than_one_statement_takes(store: Store, connection: Connection) -> None:
    """A large batch is cut into pieces, and all of them are told."""
    keys = [f"{number % 30_000:06}" for number in range(45_000)]
    placed = place(store, connection, *keys)
    assert placings(placed) == [CREATED] * 30_000 + [SKIPPED] * 15_000
    assert [answer.job for answer in placed[30_000:]] == [answer.job for answer in placed[:15_000]]
    assert counts(store, connection) == {State.AVAILABLE: 30_000}


def test_a_caller_who_rolls_back(store: Store, connection: Connection) -> None:
    """Neither the job nor its key is left."""
    place(store, connection, "other")
    operation = store.enqueue(Order(spec_of(unique=Unique()), ["{}"], Keys(unique=["a"])))
    transaction = store.transaction()
    [placed] = run_inside(store, transaction, operation).placed
    assert placed.placing is CREATED
    transaction.rollback()
    assert placings(place(store, connection, "a")) == [CREATED]


def test_producers_at_once(store: Store) -> None:
    """Of many producers of the same keys at the same moment one creates each job."""
    start = threading.Barrier(4)
    answers: list[list[Placed]] = []

    def work(number: int) -> None:
        keys = [f"{number}" for number in range(200)]
        with closing(store.connect()) as connection:
            start.wait()
            answers.append(place(store, connection, *(keys if number % 2 else reversed(keys))))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(placings(answer).count(CREATED) for answer in answers) == 200
    with closing(store.connect()) as connection:
        assert counts(store, connection) == {State.AVAILABLE: 200}


# Replace -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [None, HOUR])
@pytest.mark.parametrize("after", [None, HOUR])
def test_a_waiting_job_is_replaced(
    store: Store, connection: Connection, before: float | None, after: float | None
) -> None:
    """It keeps its id, and has the new args, priority and time; it runs once."""
    [first] = place(store, connection, "a", unique=REPLACE, delay=before)
    answer = place(
        store, connection, "a", unique=REPLACE, first=7, delay=after, priority=3, max_attempts=9
    )
    assert answer == [Placed(first.job, REPLACED)]
    found = record(store, connection, first.job)
    assert (found.args, found.priority, found.max_attempts) == ('{"number":7}', 3, 9)
    assert found.state is (State.SCHEDULED if after else State.AVAILABLE)
    assert counts(store, connection) == {found.state: 1}
    assert [job.id for job in connection.run(store.list_jobs(JobFilter()))] == [first.job]
    connection.run(store.retry([first.job]))
    session, job = run_one(store, connection)
    assert (job.id, job.args, job.attempt) == (first.job, '{"number":7}', 1)
    assert settle(store, connection, session, settlement(job, Move.COMPLETE)) == []
    assert claim(store, connection, session) == []
    assert counts(store, connection) == {State.COMPLETED: 1}


def test_a_replaced_entry_that_comes_due_does_not_run(store: Store, connection: Connection) -> None:
    """The time it had before means nothing any more."""
    soon = datetime.now(UTC) + timedelta(seconds=0.3)
    [first] = place(store, connection, "a", unique=REPLACE, at=soon)
    place(store, connection, "a", unique=REPLACE, first=7)
    session, job = run_one(store, connection)
    settle(store, connection, session, settlement(job, Move.COMPLETE))
    while datetime.now(UTC) < soon + timedelta(seconds=0.1):
        connection.run(store.stage(100))
    connection.run(store.stage(100))
    assert claim(store, connection, session) == []
    assert states(store, connection, [first.job]) == [State.COMPLETED]
    assert counts(store, connection) == {State.COMPLETED: 1}


def test_the_same_time_again(store: Store, connection: Connection) -> None:
    """A job replaced by one of the very same time is staged, however few are staged at once."""
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    keys = [f"{number}" for number in range(5)]
    for first in (0, 10, 20):
        place(store, connection, *keys, unique=REPLACE, at=soon, first=first)
    assert counts(store, connection) == {State.SCHEDULED: 5}
    patience = time.monotonic() + 10.0
    while counts(store, connection) != {State.AVAILABLE: 5}:
        assert time.monotonic() < patience
        connection.run(store.stage(1))
    session = open_session(store, connection)
    found = claim(store, connection, session)
    assert sorted(job.args for job in found) == [
        f'{{"number":{20 + number}}}' for number in range(5)
    ]
    assert counts(store, connection) == {State.RUNNING: 5}


def test_a_running_job_is_not_replaced(store: Store, connection: Connection) -> None:
    """What has started goes on, and nothing is stored."""
    [first] = place(store, connection, "a", unique=REPLACE)
    session, job = run_one(store, connection)
    assert place(store, connection, "a", unique=REPLACE, first=7) == [Placed(first.job, SKIPPED)]
    assert settle(store, connection, session, settlement(job, Move.COMPLETE)) == []
    assert record(store, connection, first.job).args == '{"number":0}'


def test_a_replaced_retry_begins_anew(store: Store, connection: Connection) -> None:
    """All attempts are there again, and the errors belong to what was."""
    [first] = place(store, connection, "a", unique=REPLACE)
    session, job = run_one(store, connection)
    settle(store, connection, session, settlement(job, Move.RETRY, delay=HOUR))
    assert place(store, connection, "a", unique=REPLACE, first=7) == [Placed(first.job, REPLACED)]
    found = record(store, connection, first.job)
    assert (found.state, found.attempt, found.errors) == (State.AVAILABLE, 0, ())
    assert counts(store, connection) == {State.AVAILABLE: 1}


def test_several_of_one_key_replace_each_other(store: Store, connection: Connection) -> None:
    """In one `enqueue_many` the last one counts."""
    placed = place(store, connection, "b", "a", "b", unique=REPLACE)
    assert placings(placed) == [CREATED, CREATED, REPLACED]
    assert placed[0].job == placed[2].job
    assert record(store, connection, placed[0].job).args == '{"number":2}'
    again = place(store, connection, "b", "b", "c", unique=REPLACE, first=10)
    assert placings(again) == [REPLACED, REPLACED, CREATED]
    assert record(store, connection, placed[0].job).args == '{"number":11}'


@pytest.mark.parametrize("delays", [(None, None), (None, HOUR), (HOUR, None), (HOUR, HOUR)])
def test_replaced_in_its_own_transaction(
    store: Store, connection: Connection, delays: tuple[float | None, ...]
) -> None:
    """A job may be enqueued and replaced before any worker has seen it, again and again."""
    place(store, connection, "other", delay=HOUR)
    transaction = store.transaction()
    for number, delay in enumerate((*delays, *delays, None)):
        spec = spec_of(unique=REPLACE, delay=delay)
        args = [f'{{"number":{number}}}']
        [placed] = run_inside(
            store, transaction, store.enqueue(Order(spec, args, Keys(["a"])))
        ).placed
    transaction.commit()
    assert counts(store, connection) == {State.AVAILABLE: 1, State.SCHEDULED: 1}
    session = open_session(store, connection)
    [job] = claim(store, connection, session, 1)
    assert (job.id, job.args) == (placed.job, '{"number":4}')
    assert claim(store, connection, session, 1) == []


# Raise -------------------------------------------------------------------------------------------


def test_raising(store: Store, connection: Connection) -> None:
    """The error names the job that is there, and of several jobs none is stored."""
    unique = Unique(on_conflict="raise")
    [first] = place(store, connection, "b", unique=unique)
    with pytest.raises(JobExists, match=f"job {first.job} .*'b'.*nothing was stored") as caught:
        place(store, connection, "a", "b", "c", unique=unique)
    assert caught.value.job == first.job
    assert counts(store, connection) == {State.AVAILABLE: 1}
    assert placings(place(store, connection, "a", "c", unique=unique)) == [CREATED, CREATED]


def test_raising_for_two_in_one_call(store: Store, connection: Connection) -> None:
    """No job has the key yet, so none is named."""
    with pytest.raises(JobExists, match=r"two jobs.*'a'") as caught:
        place(store, connection, "a", "b", "a", unique=Unique(on_conflict="raise"))
    assert caught.value.job is None
    assert connection.run(store.list_jobs(JobFilter())) == []


@pytest.mark.parametrize("delay", [None, HOUR])
def test_raising_in_a_callers_transaction(
    store: Store, connection: Connection, delay: float | None
) -> None:
    """The caller may go on: nothing of the call is left, and all before it is."""
    unique = Unique(on_conflict="raise")
    place(store, connection, "b", unique=unique)
    transaction = store.transaction()
    spec = spec_of(unique=unique, delay=delay)
    run_inside(store, transaction, store.enqueue(Order(spec, ["{}"], Keys(["z"]))))
    with pytest.raises(JobExists):
        run_inside(
            store, transaction, store.enqueue(Order(spec, ["{}"] * 3, Keys(["a", "b", "c"])))
        )
    transaction.commit()
    found = connection.run(store.list_jobs(JobFilter()))
    assert sorted(job.unique_key or "" for job in found) == ["b", "z"]
    assert sum(counts(store, connection).values()) == 2
    assert placings(place(store, connection, "a", "c", unique=unique)) == [CREATED, CREATED]


# Debounce ----------------------------------------------------------------------------------------


def test_debouncing(store: Store, connection: Connection) -> None:
    """Each enqueue pushes the start back and brings its args, up to the cap."""
    unique = Unique(on_conflict="debounce", cap=100)
    began = datetime.now(UTC)
    [first] = place(store, connection, "a", unique=unique, delay=60.0)
    assert close_to(
        record(store, connection, first.job).scheduled_at, began + timedelta(seconds=60)
    )
    assert place(store, connection, "a", unique=unique, delay=80.0, first=1) == [
        Placed(first.job, REPLACED)
    ]
    found = record(store, connection, first.job)
    assert close_to(found.scheduled_at, began + timedelta(seconds=80), 5)
    assert found.args == '{"number":1}'
    place(store, connection, "a", unique=unique, delay=300.0)
    found = record(store, connection, first.job)
    assert close_to(found.scheduled_at, began + timedelta(seconds=100), 5)
    assert counts(store, connection) == {State.SCHEDULED: 1}


# While waiting, and periods ----------------------------------------------------------------------


def test_the_key_of_a_started_job(store: Store, connection: Connection) -> None:
    """`while_=("waiting",)`: a second one may wait while the first one runs; each runs once."""
    [first] = place(store, connection, "a", unique=WHILE_WAITING)
    session, job = run_one(store, connection)
    [second] = place(store, connection, "a", unique=WHILE_WAITING)
    assert second.placing is CREATED
    assert place(store, connection, "a", unique=WHILE_WAITING) == [Placed(second.job, SKIPPED)]
    # The end of the first one frees nothing: the key is the second one's.
    assert settle(store, connection, session, settlement(job, Move.COMPLETE)) == []
    assert place(store, connection, "a", unique=WHILE_WAITING) == [Placed(second.job, SKIPPED)]
    assert first.job != second.job


@pytest.mark.parametrize("move", [Move.RETRY, Move.RELEASE, Move.AGAIN])
def test_coming_back_without_a_key(store: Store, connection: Connection, move: Move) -> None:
    """A job whose key was free while it ran comes back without it, and both run."""
    [first] = place(store, connection, "a", unique=WHILE_WAITING)
    session, job = run_one(store, connection)
    [second] = place(store, connection, "a", unique=WHILE_WAITING)
    assert settle(store, connection, session, settlement(job, move)) == []
    connection.run(store.stage(10))
    assert record(store, connection, first.job).unique_key is None
    found = claim(store, connection, session)
    assert sorted(job.id for job in found) == [first.job, second.job]
    assert (
        settle(store, connection, session, *(settlement(job, Move.COMPLETE) for job in found)) == []
    )
    assert placings(place(store, connection, "a")) == [CREATED]


@pytest.mark.parametrize("how", [Move.COMPLETE, Move.DISCARD, Move.CANCEL, "rescue"])
def test_retried_by_hand_without_a_key(store: Store, connection: Connection, how: str) -> None:
    """A job whose key was free while it ran has none when it has finished: a retry takes none."""
    [first] = place(store, connection, "a", unique=WHILE_WAITING, max_attempts=1)
    lost = open_session(store, connection, timeout=0.02)
    [job] = claim(store, connection, lost)
    if how == "rescue":
        rescued(store, connection, lost)
    else:
        assert settle(store, connection, lost, settlement(job, Move(how))) == []
    assert record(store, connection, first.job).unique_key is None
    assert connection.run(store.retry([first.job])) == [first.job]
    [again] = claim(store, connection, open_session(store, connection))
    assert again.id == first.job
    assert placings(place(store, connection, "a", unique=WHILE_WAITING)) == [CREATED]


@pytest.mark.parametrize("delay", [None, 600.0])
@pytest.mark.parametrize("unique", [WHILE_WAITING, None])
def test_a_cancelled_job_that_is_retried_by_hand(
    store: Store, connection: Connection, unique: Unique | None, delay: float | None
) -> None:
    """It has its key again, for as long as it would have had it."""
    options = {} if unique is None else {"unique": unique}
    [first] = place(store, connection, "a", delay=delay, **options)
    assert connection.run(store.cancel([first.job])) == {first.job: State.CANCELLED}
    assert connection.run(store.retry([first.job])) == [first.job]
    assert place(store, connection, "a", **options) == [Placed(first.job, SKIPPED)]
    _, job = run_one(store, connection)
    assert job.id == first.job
    expected = CREATED if unique is WHILE_WAITING else SKIPPED
    assert placings(place(store, connection, "a", **options)) == [expected]


@pytest.mark.parametrize("move", [Move.RETRY, Move.AGAIN])
def test_debouncing_what_came_back(store: Store, connection: Connection, move: Move) -> None:
    """The cap counts from when the job came back to wait, not from its first enqueue."""
    unique = Unique(on_conflict="debounce", cap=0.5)
    [first] = place(store, connection, "a", unique=unique, delay=0.001)
    until(lambda: connection.run(store.stage(10)).staged or None)
    session, job = run_one(store, connection)
    until(
        lambda: (
            datetime.now(UTC) - datetime.fromtimestamp(job.enqueued_at, UTC)
            > timedelta(seconds=0.8)
            or None
        )
    )
    assert settle(store, connection, session, settlement(job, move, delay=HOUR)) == []
    began = datetime.now(UTC)
    place(store, connection, "a", unique=unique, delay=0.4)
    found = record(store, connection, first.job).scheduled_at
    assert found is not None
    assert found > began + timedelta(seconds=0.05)


def test_a_period(store: Store, connection: Connection) -> None:
    """At most one per period, finished or not; the next period has one of its own."""
    unique = Unique(period=HOUR * 24 * 365 * 20)
    [first] = place(store, connection, "a", unique=unique)
    session, job = run_one(store, connection)
    assert settle(store, connection, session, settlement(job, Move.COMPLETE, keep=0.0)) == []
    assert place(store, connection, "a", unique=unique) == [Placed(first.job, SKIPPED)]
    replace = Unique(period=unique.period, on_conflict="replace")
    assert place(store, connection, "a", unique=replace) == [Placed(first.job, SKIPPED)]
    connection.run(store.tidy())
    assert place(store, connection, "a", unique=unique) == [Placed(first.job, SKIPPED)]


def test_a_period_that_is_over(store: Store, connection: Connection) -> None:
    """Its keys are forgotten."""
    unique = Unique(period=0.05)
    seen: set[JobId] = set()
    while len(seen) < 3:
        for answer in place(store, connection, "a", unique=unique):
            if answer.placing is CREATED:
                seen.add(answer.job)
    session = open_session(store, connection)
    found = claim(store, connection, session)
    settle(store, connection, session, *(settlement(job, Move.COMPLETE) for job in found))
    assert {job.id for job in found} == seen
    assert len({job.unique_key for job in found}) == 3


# Hands -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [None, HOUR])
@pytest.mark.parametrize("replaced", [False, True])
def test_cancelling_and_deleting(
    store: Store,
    connection: Connection,
    delay: float | None,
    replaced: bool,  # noqa: FBT001
) -> None:
    """A job that is cancelled or deleted frees its key."""
    for act, end in ((store.cancel, {State.CANCELLED: 1}), (store.delete, {State.CANCELLED: 1})):
        [answer] = place(store, connection, "a", unique=REPLACE, delay=delay)
        assert answer.placing is CREATED
        if replaced:
            place(store, connection, "a", unique=REPLACE, delay=None if delay else HOUR)
        connection.run(act([answer.job]))
        assert counts(store, connection) == end
    assert placings(place(store, connection, "a")) == [CREATED]
    session = open_session(store, connection)
    retry_discarded(store, connection)
    assert len(claim(store, connection, session)) == 1


def test_retrying_a_finished_one(store: Store, connection: Connection) -> None:
    """It takes its key again if that is free; else it stays as it is."""
    [first] = place(store, connection, "a")
    session, job = run_one(store, connection)
    settle(store, connection, session, settlement(job, Move.DISCARD))
    [second] = place(store, connection, "a")
    assert connection.run(store.retry([first.job])) == []
    assert retry_discarded(store, connection) == []
    assert states(store, connection, [first.job, second.job]) == [State.DISCARDED, State.AVAILABLE]
    connection.run(store.delete([second.job]))
    assert connection.run(store.retry([first.job])) == [first.job]
    assert place(store, connection, "a") == [Placed(first.job, SKIPPED)]
    session, job = run_one(store, connection)
    assert job.id == first.job
    assert settle(store, connection, session, settlement(job, Move.COMPLETE)) == []
    assert placings(place(store, connection, "a")) == [CREATED]


def test_a_finished_key_is_not_taken_for_another_state(
    store: Store, connection: Connection
) -> None:
    """A unique job that is not in the wanted state does not get its key again."""
    [first] = place(store, connection, "a")
    connection.run(store.cancel([first.job]))
    assert connection.run(store.retry([first.job], only=State.DISCARDED)) == []
    [second] = place(store, connection, "a")
    assert second.placing is CREATED


def test_retrying_two_of_one_key(store: Store, connection: Connection) -> None:
    """Only one of them comes back: the newer one."""
    jobs: list[JobId] = []
    for _ in range(2):
        [one] = place(store, connection, "a")
        session, job = run_one(store, connection)
        settle(store, connection, session, settlement(job, Move.DISCARD))
        jobs.append(one.job)
    assert retry_discarded(store, connection) == [jobs[1]]
    assert counts(store, connection) == {State.AVAILABLE: 1, State.DISCARDED: 1}


def test_retrying_within_a_period(store: Store, connection: Connection) -> None:
    """A job whose period is not over has its key still."""
    [one] = place(store, connection, "a", unique=Unique(period=HOUR * 24 * 365 * 20))
    session, job = run_one(store, connection)
    settle(store, connection, session, settlement(job, Move.COMPLETE))
    assert connection.run(store.retry([one.job])) == [one.job]
    _, job = run_one(store, connection)
    assert job.id == one.job


def test_a_rescued_job_keeps_its_key(store: Store, connection: Connection) -> None:
    """A dead worker's job is available again under its key, and a discarded one frees it."""
    [one] = place(store, connection, "a", max_attempts=2)
    for _ in range(2):
        session = open_session(store, connection, timeout=0.05)
        assert [job.id for job in claim(store, connection, session)] == [one.job]
        connection.run(store.begin_lot(session, [one.job]))
        assert place(store, connection, "a") == [Placed(one.job, SKIPPED)]
        rescued(store, connection, session)
    assert states(store, connection, [one.job]) == [State.DISCARDED]
    assert placings(place(store, connection, "a")) == [CREATED]


@pytest.mark.parametrize("unwanted", [False, True])
def test_a_session_that_closes(store: Store, connection: Connection, *, unwanted: bool) -> None:
    """What goes back keeps its key, and what is cancelled on the way frees it."""
    [one] = place(store, connection, "a")
    session, _ = run_one(store, connection)
    if unwanted:
        connection.run(store.cancel([one.job]))
    connection.run(store.close_session(session))
    assert placings(place(store, connection, "a")) == [CREATED if unwanted else SKIPPED]
    _, job = run_one(store, connection)
    assert (job.id == one.job) is not unwanted


def test_cancelled_instead_of_retried(store: Store, connection: Connection) -> None:
    """A run that ends with a retry after a request to cancel it frees its key."""
    [one] = place(store, connection, "a")
    session, job = run_one(store, connection)
    connection.run(store.cancel([one.job]))
    settle(store, connection, session, settlement(job, Move.AGAIN, delay=HOUR))
    assert states(store, connection, [one.job]) == [State.CANCELLED]
    assert placings(place(store, connection, "a")) == [CREATED]


# Looking -----------------------------------------------------------------------------------------


def test_listing_a_subject(store: Store, connection: Connection) -> None:
    """A key finds its job wherever it is, a prefix finds several."""
    placed = place(store, connection, "site:a", "site:b", "other")
    place(store, connection, "site:a", unique=REPLACE, delay=HOUR)

    def listed(subject: str, **wanted: Any) -> list[JobId]:
        found = connection.run(store.list_jobs(JobFilter(subject=subject, **wanted)))
        return [job.id for job in found]

    a, b, other = (answer.job for answer in placed)
    assert listed("site:a") == [a]
    assert listed("site:") == []
    assert listed("site:*") == [b, a]
    assert listed("*", limit=2) == [other, b]
    session = open_session(store, connection)
    found = claim(store, connection, session)
    assert listed("site:*", state=State.RUNNING) == [b]
    settle(store, connection, session, *(settlement(job, Move.COMPLETE) for job in found))
    assert listed("site:*") == [b, a]
    assert listed("site:*", state=State.SCHEDULED) == [a]
    assert listed("site:*", task="shop.other") == []
