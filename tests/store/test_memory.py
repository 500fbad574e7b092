"""What jobs remember: appended by those who hold them, kept from run to run, and gone with the job."""

from typing import Any

import pytest

from rota import Unique
from rota.model.enqueued import Placed, Placing
from rota.model.job import ClaimedJob, JobId, Keys, LeaseId, Order
from rota.model.memory import FOR_EVER, Answer, Holder, Kind, Pause, Remembered, records
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    NOBODY,
    claim,
    open_session,
    record,
    rescued,
    run_inside,
    running,
    settle,
    settlement,
    spec_of,
)


def memory(store: Store, connection: Connection, job: JobId) -> list[Remembered]:
    return connection.run(store.memory.load([job])).get(job, [])


def known(store: Store, connection: Connection, job: JobId) -> list[tuple[str, str, str | None]]:
    return [(row.kind, row.name, row.value) for row in memory(store, connection, job)]


def remember(store: Store, connection: Connection, holder: Holder, name: str, value: str) -> bool:
    return connection.run(store.memory.remember(holder, name, value))


def answer(store: Store, connection: Connection, holder: Holder, *, over: bool) -> Answer | None:
    return connection.run(store.memory.answer(holder, "go", "go", over=over))


def held(store: Store, connection: Connection) -> Holder:
    """A job in the hands of a worker."""
    session, [job] = running(store, connection)
    return Holder(session, job.lease, job.id)


def end(store: Store, connection: Connection, holder: Holder, move: Move, **rest: Any) -> None:
    """The worker says how the run has ended."""
    [found] = connection.run(store.get([holder.job]))
    assert found.state is State.RUNNING
    settled = settlement(_claimed(holder), move, **rest)
    assert settle(store, connection, holder.session, settled) == []


def _claimed(holder: Holder) -> ClaimedJob:
    return ClaimedJob(holder.job, holder.lease, "shop.send", "{}", "default", 0, 1, 5, None, 0.0)


def again(store: Store, connection: Connection, holder: Holder) -> Holder:
    """The job in its next run."""
    connection.run(store.stage(100))
    [job] = claim(store, connection, holder.session)
    assert job.id == holder.job
    return Holder(holder.session, job.lease, job.id)


def waits(seconds: float = FOR_EVER) -> tuple[Pause, ...]:
    return (Pause(Kind.WAIT, "go", seconds, "go"),)


def asleep(store: Store, connection: Connection, seconds: float = FOR_EVER) -> Holder:
    """A job that waits for the signal `go`."""
    holder = held(store, connection)
    found = answer(store, connection, holder, over=False)
    assert found is not None
    assert not found.ended
    end(store, connection, holder, Move.SNOOZE, delay=seconds, pauses=waits(seconds))
    return holder


def place(store: Store, connection: Connection, **options: Any) -> Placed:
    """Enqueue the job with the key `k`, or give the one that waits new args."""
    spec = spec_of(unique=Unique(on_conflict="replace"), **options)
    [placed] = connection.run(store.enqueue(Order(spec, ["{}"], Keys(unique=["k"])))).placed
    return placed


def unique(store: Store, connection: Connection) -> Holder:
    """This job in the hands of a worker."""
    job = place(store, connection).job
    session = open_session(store, connection)
    [claimed] = claim(store, connection, session)
    assert claimed.id == job
    return Holder(session, claimed.lease, job)


def test_a_job_that_remembers_nothing(store: Store, connection: Connection) -> None:
    """Most jobs have no memory, and jobs that do not exist have none."""
    holder = held(store, connection)
    assert connection.run(store.memory.load([holder.job, NOBODY])) == {}
    assert connection.run(store.memory.load([])) == {}


def test_steps_are_known_in_later_runs(store: Store, connection: Connection) -> None:
    """They are there in their order, after a failed attempt too."""
    holder = held(store, connection)
    assert remember(store, connection, holder, "charge", '{"id": 7}')
    assert remember(store, connection, holder, "book", "null")
    end(store, connection, holder, Move.RETRY)
    holder = again(store, connection, holder)
    found = known(store, connection, holder.job)
    assert [(kind, name) for kind, name, _ in found] == [("step", "charge"), ("step", "book")]
    assert found[0][2] == '{"id": 7}'


def test_who_does_not_hold_the_job_appends_nothing(store: Store, connection: Connection) -> None:
    """A stranger, an old lease, and a worker that was declared dead are refused."""
    holder = held(store, connection)
    stranger = holder._replace(session=open_session(store, connection))
    for other in (stranger, holder._replace(lease=LeaseId(holder.lease + 1000))):
        assert not remember(store, connection, other, "charge", "1")
        assert answer(store, connection, other, over=True) is None
    connection.run(store.close_session(holder.session))
    assert not remember(store, connection, holder, "charge", "1")
    short = open_session(store, connection, timeout=0.02)
    [job] = claim(store, connection, short)
    rescued(store, connection, short)
    assert not remember(store, connection, Holder(short, job.lease, job.id), "charge", "1")
    assert answer(store, connection, Holder(short, job.lease, job.id), over=True) is None
    assert known(store, connection, holder.job) == []


def test_a_settled_job_appends_nothing(store: Store, connection: Connection) -> None:
    """A thread that goes on after its job has ended is refused."""
    holder = held(store, connection)
    end(store, connection, holder, Move.COMPLETE)
    assert not remember(store, connection, holder, "late", "1")
    assert known(store, connection, holder.job) == []


def test_a_sleep_ends_with_its_timer(store: Store, connection: Connection) -> None:
    """It is written with the snooze, and ends when the job is due."""
    holder = held(store, connection)
    pauses = (Pause(Kind.SLEEP, "sleep", 60.0), Pause(Kind.SLEEP, "long", 90.0))
    end(store, connection, holder, Move.SNOOZE, delay=60.0, pauses=pauses)
    short, long = memory(store, connection, holder.job)
    due = record(store, connection, holder.job).scheduled_at
    assert short.until is not None
    assert due is not None
    assert abs((short.until - due).total_seconds()) < 0.001
    assert long.until is not None
    assert abs((long.until - short.until).total_seconds() - 30.0) < 0.001
    assert short.left is not None
    assert 50 < short.left <= 60


def test_an_early_signal_is_taken(store: Store, connection: Connection) -> None:
    """What comes before the job asks for it is there, the oldest first, each once."""
    holder = held(store, connection)
    for value in ("1", "2"):
        state = connection.run(store.memory.signal(holder.job, "go", value, None))
        assert state is State.RUNNING
    first = answer(store, connection, holder, over=False)
    second = answer(store, connection, holder, over=True)
    third = answer(store, connection, holder, over=False)
    assert first is not None
    assert second is not None
    assert (first.value, second.value) == ("1", "2")
    assert third == Answer(ended=False, signal=None, value=None)


def test_a_signal_wakes_the_job(store: Store, connection: Connection) -> None:
    """The job that waits is due at once, and its wait ends with what was sent."""
    holder = asleep(store, connection)
    assert connection.run(store.stage(100)).staged == 0
    assert connection.run(store.memory.signal(holder.job, "go", '"x"', None)) is State.SCHEDULED
    assert connection.run(store.due()) == 0
    assert connection.run(store.stage(100)).staged == 1
    holder = again(store, connection, holder)
    found = answer(store, connection, holder, over=False)
    assert found is not None
    assert found.value == '"x"'


def test_another_signal_does_not(store: Store, connection: Connection) -> None:
    """A signal of another name, or to another job, wakes nobody."""
    holder = asleep(store, connection)
    other = held(store, connection)
    connection.run(store.memory.signal(holder.job, "stop", "1", None))
    connection.run(store.memory.signal(other.job, "go", "1", None))
    assert connection.run(store.stage(100)).staged == 0


def test_a_signal_wakes_no_other_pause(store: Store, connection: Connection) -> None:
    """A job that waited once, and now backs off or is snoozed, keeps its time."""
    holder = asleep(store, connection)
    connection.run(store.retry([holder.job]))
    holder = again(store, connection, holder)
    end(store, connection, holder, Move.SNOOZE, delay=60.0)
    connection.run(store.memory.signal(holder.job, "go", "1", None))
    assert connection.run(store.stage(100)).staged == 0


@pytest.mark.parametrize("committed", ["before", "between"])
def test_a_signal_and_a_wait_that_cross(
    store: Store, connection: Connection, committed: str
) -> None:
    """A signal that comes after the job has looked, and before it sleeps, is not lost."""
    holder = held(store, connection)
    if committed == "before":
        connection.run(store.memory.signal(holder.job, "go", "1", None))
        end(store, connection, holder, Move.SNOOZE, delay=60.0, pauses=waits(60.0))
    else:
        found = answer(store, connection, holder, over=False)
        assert found is not None
        assert not found.ended
        connection.run(store.memory.signal(holder.job, "go", "1", None))
        # A staging in between has compared the signal already.
        connection.run(store.stage(100))
        end(store, connection, holder, Move.SNOOZE, delay=60.0, pauses=waits(60.0))
    assert connection.run(store.stage(100)).staged == 1


def test_a_wait_that_is_over(store: Store, connection: Connection) -> None:
    """It ends without a signal, once; a late signal is there for the next wait."""
    holder = held(store, connection)
    assert answer(store, connection, holder, over=True) == Answer(True, None, None)
    connection.run(store.memory.signal(holder.job, "go", "1", None))
    rows = memory(store, connection, holder.job)
    assert [(row.kind, row.signal) for row in rows if row.kind is Kind.ANSWER] == [
        (Kind.ANSWER, None)
    ]
    found = connection.run(store.memory.answer(holder, "go#2", "go", over=False))
    assert found is not None
    assert found.value == "1"


def test_a_signal_that_wins(store: Store, connection: Connection) -> None:
    """Where the time is over and a signal is there, the signal ends the wait."""
    holder = held(store, connection)
    connection.run(store.memory.signal(holder.job, "go", "1", None))
    found = answer(store, connection, holder, over=True)
    assert found is not None
    assert found.value == "1"


def test_a_signal_that_is_sent_twice(store: Store, connection: Connection) -> None:
    """Of several with one id one counts, also after it was taken; other names have ids of their own."""
    holder = held(store, connection)
    for _ in range(2):
        connection.run(store.memory.signal(holder.job, "go", "1", "a"))
    connection.run(store.memory.signal(holder.job, "other", "2", "a"))
    first = answer(store, connection, holder, over=False)
    connection.run(store.memory.signal(holder.job, "go", "1", "a"))
    second = answer(store, connection, holder, over=False)
    assert first is not None
    assert second is not None
    assert (first.value, second.ended) == ("1", False)
    other = connection.run(store.memory.answer(holder, "other", "other", over=False))
    assert other is not None
    assert other.value == "2"


def test_a_job_that_has_ended_takes_no_signals(store: Store, connection: Connection) -> None:
    """Nothing is written, and the state says why."""
    holder = held(store, connection)
    end(store, connection, holder, Move.COMPLETE)
    assert connection.run(store.memory.signal(holder.job, "go", "1", None)) is State.COMPLETED
    assert connection.run(store.memory.signal(NOBODY, "go", "1", None)) is None
    assert known(store, connection, holder.job) == []


def test_a_rollback_takes_the_signal_back(store: Store, connection: Connection) -> None:
    """It wakes nobody."""
    holder = asleep(store, connection)
    transaction = store.transaction()
    run_inside(store, transaction, store.memory.signal(holder.job, "go", "1", None))
    transaction.rollback()
    assert connection.run(store.stage(100)).staged == 0
    assert [kind for kind, *_ in known(store, connection, holder.job)] == ["wait"]


def test_a_round_ends_the_memory(store: Store, connection: Connection) -> None:
    """What a round remembers, and the signals that came in it, are gone in the next one."""
    holder = held(store, connection)
    remember(store, connection, holder, "charge", "1")
    connection.run(store.memory.signal(holder.job, "go", "1", None))
    end(store, connection, holder, Move.AGAIN, remembers=True)
    assert known(store, connection, holder.job) == []
    holder = again(store, connection, holder)
    assert answer(store, connection, holder, over=False) == Answer(False, None, None)
    remember(store, connection, holder, "charge", "2")
    assert known(store, connection, holder.job) == [("step", "charge", "2")]


def test_a_round_forgets_the_ids_of_signals(store: Store, connection: Connection) -> None:
    """A signal with the id of one that was taken in an earlier round is another one."""
    holder = held(store, connection)
    for value in ("1", "2"):
        connection.run(store.memory.signal(holder.job, "go", value, "a"))
        found = answer(store, connection, holder, over=False)
        assert found is not None
        assert found.value == value
        end(store, connection, holder, Move.AGAIN, remembers=True)
        holder = again(store, connection, holder)


@pytest.mark.parametrize("move", [Move.COMPLETE, Move.DISCARD, Move.CANCEL])
def test_a_finished_job_that_is_retried_remembers(
    store: Store, connection: Connection, move: Move
) -> None:
    """Its memory is kept with it, and comes back with it."""
    holder = held(store, connection)
    remember(store, connection, holder, "charge", "1")
    end(store, connection, holder, move)
    assert known(store, connection, holder.job) == [("step", "charge", "1")]
    assert connection.run(store.retry([holder.job])) == [holder.job]
    holder = again(store, connection, holder)
    assert known(store, connection, holder.job) == [("step", "charge", "1")]


@pytest.mark.parametrize("delay", [None, 60.0])
def test_a_job_that_is_replaced_while_it_waits(
    store: Store, connection: Connection, delay: float | None
) -> None:
    """It remembers its steps, and runs at its new time, no sooner for a signal it takes then."""
    holder = unique(store, connection)
    remember(store, connection, holder, "charge", "1")
    end(store, connection, holder, Move.SNOOZE, delay=FOR_EVER, pauses=waits(), unique_key="k")
    assert place(store, connection, delay=delay) == Placed(holder.job, Placing.REPLACED)
    connection.run(store.memory.signal(holder.job, "go", '"x"', None))
    assert connection.run(store.stage(100)).staged == 0
    if delay is not None:
        assert record(store, connection, holder.job).state is State.SCHEDULED
        assert connection.run(store.retry([holder.job])) == [holder.job]
    holder = again(store, connection, holder)
    found = answer(store, connection, holder, over=False)
    assert found is not None
    assert found.value == '"x"'
    assert ("step", "charge", "1") in known(store, connection, holder.job)


def test_a_replaced_job_waits_again(store: Store, connection: Connection) -> None:
    """With the entry that it has by then a signal finds it."""
    holder = unique(store, connection)
    end(store, connection, holder, Move.SNOOZE, delay=FOR_EVER, pauses=waits(), unique_key="k")
    place(store, connection)
    holder = again(store, connection, holder)
    end(store, connection, holder, Move.SNOOZE, delay=FOR_EVER, pauses=waits(), unique_key="k")
    connection.run(store.memory.signal(holder.job, "go", "1", None))
    assert connection.run(store.stage(100)).staged == 1


def test_a_deleted_job_is_forgotten(store: Store, connection: Connection) -> None:
    """Its memory goes with it, in whatever state it is."""
    holder = held(store, connection)
    remember(store, connection, holder, "charge", "1")
    end(store, connection, holder, Move.DISCARD)
    sleeper = asleep(store, connection)
    assert sorted(connection.run(store.delete([holder.job, sleeper.job]))) == [
        holder.job,
        sleeper.job,
    ]
    assert connection.run(store.memory.load([holder.job, sleeper.job])) == {}


def test_what_people_see(store: Store, connection: Connection) -> None:
    """A record for each name, with what became of it."""
    holder = held(store, connection)
    remember(store, connection, holder, "charge", "1")
    connection.run(store.memory.signal(holder.job, "hello", "2", "a"))
    connection.run(store.memory.signal(holder.job, "hello", "2", "a"))
    pauses = (*waits(), Pause(Kind.SLEEP, "sleep", 60.0))
    end(store, connection, holder, Move.SNOOZE, delay=60.0, pauses=pauses)
    seen = {(one.kind, one.name): one for one in records(memory(store, connection, holder.job))}
    assert {key: one.state for key, one in seen.items()} == {
        ("step", "charge"): "done", ("signal", "hello"): "unread",
        ("wait", "go"): "waiting", ("sleep", "sleep"): "asleep",
    }  # fmt: skip
    assert seen["wait", "go"].until is None
    connection.run(store.memory.signal(holder.job, "go", "3", None))
    holder = again(store, connection, holder)
    answer(store, connection, holder, over=False)
    [ended] = [one for one in records(memory(store, connection, holder.job)) if one.name == "go"]
    assert (ended.kind, ended.state, ended.result) == ("wait", "done", "3")


def test_other_jobs_pay_nothing(store: Store, connection: Connection) -> None:
    """A settlement without pauses, and a round without steps, write nothing to memory."""
    holder = held(store, connection)
    end(store, connection, holder, Move.SNOOZE)
    holder = again(store, connection, holder)
    end(store, connection, holder, Move.AGAIN)
    assert memory(store, connection, holder.job) == []
