"""Events without a worker: which subscribers hear them, and what Rota logs of them."""

import json
import logging
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from rota.cli.logs import JsonLines
from rota.dispatch import Events
from rota.errors import StoreUnavailable
from rota.events import (
    ENDINGS,
    ChildReplaced,
    Event,
    JobCancelled,
    JobComesRound,
    JobCompleted,
    JobDiscarded,
    JobFailed,
    JobOverdue,
    JobReleased,
    JobRetried,
    JobSettled,
    JobSnoozed,
    JobsStaged,
    LeasesLost,
    LifespanOverdue,
    LifespanRaised,
    PausedLeft,
    QueueStrange,
    SessionLost,
    SessionRescued,
    StoreLost,
    StoreRecovered,
    TaskUnknown,
    Tidied,
    UnknownLeft,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
)
from rota.log import FIELDS, Log
from rota.model.job import ClaimedJob, JobId, LeaseId, Rescue, SessionId
from rota.model.settlement import Settlement, cancelled, completed, error_text, released
from rota.model.states import MOVES, Move, State
from rota.outcome import Discard, Retry

JOB = ClaimedJob(JobId(7), LeaseId(3), "shop.mail", '{"secret":"hush"}', "mail", 0, 2, 5, 30.0, 0.0)


NOW = datetime(2026, 1, 1, tzinfo=UTC)

UNKNOWN_LEFT = (
    "no worker of queue mail knows the task shop.send; its 3 job(s) are left: run a worker whose app has the task, "
    "or `rota jobs cancel --queue mail --task shop.send`"
)


def failed(move: Move, error: Exception) -> Settlement:
    """The settlement of a failed attempt."""
    return Settlement(JOB.id, JOB.lease, move, error=error_text(JOB.attempt, error, now=NOW))


SETTLEMENTS = {
    JobCompleted: completed(JOB, 0),
    JobRetried: failed(Move.RETRY, ValueError("hush")),
    JobDiscarded: failed(Move.DISCARD, ValueError("hush")),
    JobSnoozed: Settlement(JOB.id, JOB.lease, Move.SNOOZE, 5),
    JobComesRound: Settlement(JOB.id, JOB.lease, Move.AGAIN, 5),
    JobCancelled: cancelled(JOB, 0),
    JobReleased: released(JOB),
}


def test_every_ending_has_a_kind() -> None:
    """Each end that a run can have is an event."""
    assert set(ENDINGS) == set(MOVES[State.RUNNING]) - {Move.RESCUE}
    assert set(ENDINGS.values()) == set(SETTLEMENTS)


# Subscribers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "heard"),
    [
        (Event, {*SETTLEMENTS, JobsStaged}),
        (JobSettled, {*SETTLEMENTS}),
        (JobFailed, {JobRetried, JobDiscarded}),
        (JobRetried, {JobRetried}),
        (JobReleased, {JobReleased}),
        (JobsStaged, {JobsStaged}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_kind_and_the_finer_ones(kind: type[Event], heard: set[type[Event]]) -> None:
    """A subscriber hears its kind and all that derive from it, each event once."""
    kinds: list[type[Event]] = [*SETTLEMENTS, JobsStaged]
    events = Events()
    seen: list[Event] = []
    end = events.subscribe(kind, seen.append)
    wanted = {other for other in kinds if events.wanted(other)}
    for settlement in SETTLEMENTS.values():
        events.settled(JOB, settlement)
    events.emit(JobsStaged(3))
    assert [type(event) for event in seen] == [emitted for emitted in kinds if emitted in heard]
    assert wanted == heard
    end()
    end()
    events.settled(JOB, SETTLEMENTS[JobRetried])
    assert len(seen) == len(heard)
    kinds.append(Event)
    assert not any(events.wanted(other) for other in kinds)


def test_finer_kinds_make_the_coarse_one_wanted() -> None:
    """A kind is wanted as soon as one of its finer kinds has a subscriber."""
    events = Events()
    listeners = events.listeners(JobSettled)
    assert not listeners
    events.subscribe(JobDiscarded, lambda _: None)
    assert listeners
    assert events.wanted(JobSettled)
    assert not events.wanted(JobCompleted)


def test_no_event_is_made_without_a_subscriber(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a log, which wants failures alone, no event is made of anything else."""
    made: list[Event] = []
    monkeypatch.setattr(Events, "emit", lambda _, event: made.append(event))
    events = Events()
    Log(events)
    for settlement in SETTLEMENTS.values():
        events.settled(JOB, settlement)
    assert [type(event) for event in made] == [JobRetried, JobDiscarded]


def test_each_ending_has_a_kind() -> None:
    """Every move that a settlement can have is an event of its own."""
    assert {ENDINGS[settlement.move] for settlement in SETTLEMENTS.values()} == set(SETTLEMENTS)


def test_the_same_subscriber_twice() -> None:
    """It hears each event twice; ending one subscription, even twice, leaves the other."""
    events = Events()
    seen: list[Event] = []
    end = events.subscribe(JobsStaged, seen.append)
    events.subscribe(JobsStaged, seen.append)
    events.emit(JobsStaged(1))
    assert len(seen) == 2
    end()
    end()
    events.emit(JobsStaged(2))
    assert len(seen) == 3


def test_collecting() -> None:
    """`collect` has the events of the block, of a kind and the finer ones, and ends with it."""
    events = Events()
    with events.collect(JobFailed) as failures:
        for settlement in SETTLEMENTS.values():
            events.settled(JOB, settlement)
    events.settled(JOB, SETTLEMENTS[JobRetried])
    assert [(type(failure), failure.exception) for failure in failures] == [
        (JobRetried, "builtins.ValueError"),
        (JobDiscarded, "builtins.ValueError"),
    ]


# What is logged ----------------------------------------------------------------------------------

RESCUE = Rescue(SessionId(4), "web1:42", (JobId(1), JobId(2)), (JobId(3),))

OVERDUE = (
    "job 7 (shop.mail) has run longer than its timeout of 30.0 seconds; a thread cannot be stopped from outside, "
    "so its Context says cancelled"
)
LEASES_LOST = "LeaseLost: 2 job(s) were taken over by other workers; what this worker did was not stored: [1, 2]"
RESCUED = "session 4 of worker web1:42 died: 2 job(s) available again, 1 discarded"
LINES: list[tuple[Event, str, str, dict[str, object]]] = [
    (WorkerStarted(SessionId(4), ("a", "b")), "INFO", "worker started: session 4, queues a, b",
     {"session": 4}),
    (WorkerStopping(30.0, 2), "INFO", "worker stopping: 2 running job(s) have 30 seconds left",
     {"count": 2}),
    (LifespanOverdue("engine", 10.0), "ERROR",
     "lifespan engine did not end within 10 seconds, and was abandoned", {"lifespan": "engine"}),
    (LifespanRaised("engine", OSError("closed")), "ERROR", "lifespan engine raised an exception as it ended",
     {"lifespan": "engine", "exception": "builtins.OSError"}),
    (ChildReplaced(4712, 100, None), "INFO", "child process 4712 is replaced after 100 job(s)",
     {"count": 100}),
    (ChildReplaced(4712, 100, 731 * 1024**2), "INFO",
     "child process 4712 is replaced after 100 job(s); it has 731 MB of memory in use", {"count": 100}),
    (WorkerStopped(SessionId(4), 3), "INFO", "worker stopped: session 4, 3 job(s) given back",
     {"session": 4, "count": 3}),
    (JobRetried(JOB, SETTLEMENTS[JobRetried]), "WARNING",
     "job 7 (shop.mail) attempt 2 of 5 failed: ValueError",
     {"job": 7, "task": "shop.mail", "queue": "mail", "attempt": 2,
      "exception": "builtins.ValueError"}),
    (JobDiscarded(JOB, SETTLEMENTS[JobDiscarded]), "ERROR",
     "job 7 (shop.mail) discarded after attempt 2 of 5: ValueError",
     {"job": 7, "task": "shop.mail", "queue": "mail", "attempt": 2,
      "exception": "builtins.ValueError"}),
    (JobDiscarded(JOB, failed(Move.DISCARD, Discard("no use"))), "INFO",
     "job 7 (shop.mail) discarded after attempt 2 of 5: Discard", {"job": 7}),
    (JobDiscarded(JOB, failed(Move.DISCARD, Retry("later"))), "ERROR",
     "job 7 (shop.mail) discarded after attempt 2 of 5: Retry", {"job": 7}),
    (JobOverdue(JOB), "WARNING", OVERDUE, {"job": 7}),
    (TaskUnknown(JOB), "WARNING", "no task named 'shop.mail' here: this worker gives its jobs back, such as job 7; is its module imported?",
     {"job": 7, "task": "shop.mail"}),
    (LeasesLost((JobId(1), JobId(2))), "WARNING", LEASES_LOST, {"count": 2}),
    (SessionLost(SessionId(4)), "WARNING",
     "session 4 is lost; its jobs are left to other workers", {"session": 4}),
    (SessionRescued(RESCUE), "ERROR", RESCUED, {"session": 4}),
    (SessionRescued(replace(RESCUE, discarded=())), "WARNING",
     RESCUED.replace("1 discarded", "0 discarded"), {"session": 4}),
    (StoreLost(StoreUnavailable("away"), "claimer"), "WARNING", "claimer: away",
     {"part": "claimer"}),
    (PausedLeft("mail", 3), "WARNING", "queue mail is paused; its 3 job(s) are left",
     {"queue": "mail", "count": 3}),
    (UnknownLeft("mail", "shop.send", 3), "WARNING", UNKNOWN_LEFT,
     {"queue": "mail", "task": "shop.send", "count": 3}),
    (QueueStrange("mial", "mail"), "WARNING",
     "queue mial: no task here names it, and it has never had a job; did you mean mail?",
     {"queue": "mial"}),
    (QueueStrange("fax", None), "WARNING",
     "queue fax: no task here names it, and it has never had a job", {"queue": "fax"}),
    (QueueStrange("mail,fax", "mail"), "WARNING",
     "queue mail,fax: no task here names it, and it has never had a job; give --queue once for each queue",
     {"queue": "mail,fax"}),
    (StoreRecovered("claimer"), "WARNING", "claimer: the database answers again",
     {"part": "claimer"}),
    (Tidied(("log: segment 0 is empty again",)), "INFO", "upkeep: log: segment 0 is empty again",
     {"part": "upkeep"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("event", "level", "line", "fields"), LINES, ids=[type(line[0]).__name__ for line in LINES]
)
def test_lines(
    caplog: pytest.LogCaptureFixture, event: Event, level: str, line: str, fields: dict[str, object]
) -> None:
    """Each event has its line, and the record has its name and ids, for lines of JSON, too."""
    caplog.set_level("DEBUG", "rota")
    events = Events()
    Log(events)
    events.emit(event)
    [record] = caplog.records
    assert (record.levelname, record.getMessage()) == (level, line)
    fields = {"event": type(event).__name__, **fields}
    assert {name: vars(record)[name] for name in fields} == fields
    assert {name for name in FIELDS if name in vars(record)} >= fields.keys()
    assert json.loads(JsonLines().format(record)).items() >= fields.items()
    assert "hush" not in JsonLines().format(record)


def test_a_retry_that_is_meant_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A `Retry` is an event, and not logged while another attempt follows."""
    caplog.set_level("DEBUG", "rota")
    events = Events()
    Log(events)
    with events.collect(JobFailed) as failures:
        events.settled(JOB, failed(Move.RETRY, Retry("later")))
    assert len(failures) == 1
    assert caplog.records == []


def test_nothing_runs_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """A worker that stops while it runs no job has nothing to say of the time that is left."""
    caplog.set_level("DEBUG", "rota")
    events = Events()
    Log(events)
    events.emit(WorkerStopping(30.0))
    assert caplog.records == []


def test_unknown_tasks_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand jobs of an unknown task are one line, those of another task another line."""
    events = Events()
    Log(events)
    for _ in range(1000):
        events.emit(TaskUnknown(JOB))
    events.emit(TaskUnknown(replace(JOB, task="shop.other")))
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
