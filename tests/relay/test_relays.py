"""Relays in an app and its workers: what is refused, and what happens to jobs that are no messages."""

import asyncio
from functools import partial
from typing import Any

import pytest

from rota import ConfigError, Rota, State, TaskAlreadyRegistered, WorkerConfig
from rota.events import JobCompleted, JobDiscarded, RelayInterrupted, SettlementsWritten
from rota.model.job import JobSpec, Order
from rota.relay import RedisStream
from rota.relay.message import Message, MessageRefused
from rota.worker import Worker, forwarder
from tests.fixtures.workers import drained, records, until, working
from tests.relay.listing import Listing


class Away:
    """Raises until it has been called often enough."""

    def __init__(self, times: int) -> None:
        self._left = times

    def __call__(self, _: Message) -> None:
        """Be away, or not any more."""
        self._left -= 1
        if self._left >= 0:
            raise ConnectionError


def arrived(target: Listing, count: int) -> bool:
    """Whether so many messages were sent."""
    return len(target.ids) == count


def nothing() -> None:
    """Do nothing."""


# Sending ------------------------------------------------------------------------------------------


def test_batches_are_as_large_as_they_may_be(app: Rota) -> None:
    """One call for as many jobs as wait, up to `batch`, which are completed and told."""
    target = Listing()
    orders = app.relay("orders", to=target, batch=40)
    orders.enqueue_many([("1", "Placed", n) for n in range(100)])
    with (
        app.events.collect(JobCompleted) as completed,
        app.events.collect(SettlementsWritten) as written,
    ):
        drained(app)
    assert [len(batch) for batch in target.sent] == [40, 40, 20]
    assert [event.job.id for event in completed] == target.ids
    assert sum(event.count for event in written) == 100
    assert records(app) == []


def test_no_later_job_overtakes_one_that_could_not_be_sent(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that fails is sent again as it was, without an attempt spent, and before all others."""
    monkeypatch.setattr(forwarder, "FIRST_PAUSE", 0.001)
    target = Listing(Away(3))
    orders = app.relay("orders", to=target, batch=2, retention=60)
    jobs = orders.enqueue_many([("1", "Placed", n) for n in range(6)])
    with app.events.collect(RelayInterrupted) as told:
        drained(app)
    assert target.ids == list(jobs)
    assert [event.wait for event in told] == [0.001, 0.002, 0.004]
    assert [(job.attempt, job.errors) for job in records(app, State.COMPLETED)] == [(1, ())] * 6
    # What was known of the target is forgotten each time.
    assert target.closed >= 3


def test_a_message_that_is_refused_for_good(app: Rota) -> None:
    """It is discarded with the reason, and the others go on."""

    def take(message: Message) -> None:
        if message.payload == b"2":
            text = "too large"
            raise MessageRefused(text)

    target = Listing(take)
    jobs = app.relay("orders", to=target).enqueue_many([("1", "Placed", n) for n in range(4)])
    with app.events.collect(JobDiscarded) as told:
        drained(app)
    assert target.ids == [job for job in jobs if job != jobs[2]]
    [discarded] = records(app, State.DISCARDED)
    assert (discarded.id, discarded.errors[0].message) == (jobs[2], "too large")
    assert [event.job.id for event in told] == [jobs[2]]


def test_a_job_that_is_no_message(app: Rota) -> None:
    """A job that was stored by hand with other args is discarded, and the others are sent."""
    target = Listing()
    orders = app.relay("orders", to=target)
    order = Order(JobSpec("orders", "orders"), ['{"number": 1}'])
    [strange] = app.database.run(app.database.store.enqueue(order))
    good = orders.enqueue("1", "Placed", None)
    drained(app)
    assert target.ids == [good.id]
    [discarded] = records(app, State.DISCARDED)
    assert discarded.id == strange
    assert "aggregateid, type, payload" in discarded.errors[0].message


def test_a_job_in_another_queue_is_not_completed_unsent(app: Rota) -> None:
    """A relay's job that was stored by hand in another queue fails and says why."""
    app.relay("orders", to=Listing())
    app.task(name="plain", queue="plain")(nothing)
    args = '{"aggregateid": "1", "type": "Placed", "payload": null}'
    order = Order(JobSpec("orders", "plain", max_attempts=1), [args])
    app.database.run(app.database.store.enqueue(order))
    drained(app)
    [discarded] = records(app, State.DISCARDED)
    assert "from its own queue" in discarded.errors[0].message


def test_a_worker_runs_tasks_beside_relays(app: Rota) -> None:
    """One worker serves both; a worker that names one queue serves that alone."""
    ran: list[int] = []
    target = Listing()
    orders = app.relay("orders", to=target)
    app.task(name="run", queue="plain")(ran.append)
    job = orders.enqueue("1", "Placed", None)
    app.find_task("run").enqueue(1)
    drained(app, queues=("plain",))
    assert (ran, target.ids) == ([1], [])
    drained(app)
    assert (ran, target.ids) == ([1], [job.id])


@pytest.mark.both
def test_a_relay_wakes(app: Rota) -> None:
    """A job that comes while the relay sleeps is sent at once, not at the next poll."""
    target = Listing()
    orders = app.relay("orders", to=target)
    with working(app, poll=60.0):
        for count in range(1, 4):
            orders.enqueue("1", "Placed", None)
            until(partial(arrived, target, count), "the message to be sent")


def test_the_relays_of_several_apps(
    app: Rota, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker sends for all of its apps; trouble is told to the app whose relay has it."""
    monkeypatch.setattr(forwarder, "FIRST_PAUSE", 0.001)
    with Rota(store_url) as other:
        mine, theirs = Listing(), Listing(Away(1))
        jobs = [
            app.relay("orders", to=mine).enqueue("1", "Placed", None).id,
            other.relay("bills", to=theirs).enqueue("1", "Sent", None).id,
        ]
        with (
            app.events.collect(RelayInterrupted) as told,
            other.events.collect(RelayInterrupted) as told_other,
        ):
            asyncio.run(Worker([app, other], WorkerConfig(drain=True)).arun(signals=False))
    assert mine.ids + theirs.ids == jobs
    assert (told, [event.relay for event in told_other]) == ([], ["bills"])


# Refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"to": "redis://localhost"}, "a target such as"),
        ({"to": Listing(), "batch": 0}, "between 1 and 10000"),
        ({"to": Listing(), "batch": True}, "between 1 and 10000"),
        ({"to": Listing(), "retention": -1}, "retention"),
    ],
)
def test_a_relay_that_cannot_be(app: Rota, options: dict[str, Any], said: str) -> None:
    """Bad options are refused where the relay is declared."""
    with pytest.raises(ConfigError, match=said):
        app.relay("orders", **options)


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("localhost:6379", {}, "redis://localhost"),
        ("http://localhost", {}, "redis://localhost"),
        ("redis://localhost", {"maxlen": 0}, "maxlen"),
        ("redis://localhost", {"timeout": 0}, "timeout"),
    ],
)
def test_a_stream_that_cannot_be(url: str, options: dict[str, Any], said: str) -> None:
    """So are bad targets."""
    with pytest.raises(ConfigError, match=said):
        RedisStream(url, **options)


def test_one_name_for_one_relay(app: Rota) -> None:
    """A relay's name is that of its jobs' task."""
    app.relay("orders", to=Listing())
    with pytest.raises(TaskAlreadyRegistered):
        app.relay("orders", to=Listing())


@pytest.mark.parametrize(
    "changes",
    [{"priority": 1}, {"queue": "other"}, {"unique": "{type}"}, {"fair": "{type}"}, {"expires": 1}],
)
def test_what_would_change_the_order(app: Rota, changes: dict[str, Any]) -> None:
    """Options that would take a job out of its order are refused; a delay is a wish."""
    orders = app.relay("orders", to=Listing())
    with pytest.raises(ConfigError, match="order"):
        orders.using(**changes)
    assert orders.using(delay=60).enqueue("1", "Placed", None).record().state is State.SCHEDULED


def test_a_relay_is_not_called(app: Rota) -> None:
    """Calling it sends nothing, and says so."""
    with pytest.raises(ConfigError, match="enqueue it"):
        app.relay("orders", to=Listing())("1", "Placed", None)


def test_a_queue_is_a_relays_alone(app: Rota) -> None:
    """A worker refuses tasks in a relay's queue, and patterns that would claim its jobs."""
    app.relay("orders", to=Listing())
    with pytest.raises(ConfigError, match="narrower pattern"):
        Worker(app, WorkerConfig(queues=("ord*",)))
    Worker(app, WorkerConfig(queues=("mail-*", "orders")))
    app.task(name="stranger", queue="orders")(nothing)
    with pytest.raises(ConfigError, match="another queue"):
        Worker(app)
