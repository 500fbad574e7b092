"""One action on everything that matches, and the job that carries it out."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rota import Context, Retry, Rota, State, Task, WorkerConfig
from rota.app.acting import CANCEL, DELETE, RETRY, Kind
from rota.app.bulk import Bulk, Count, Page
from rota.app.bulk_job import NAME, order
from rota.app.matching import matching
from rota.errors import ConfigError
from rota.model.audit import AuditRecord, Deed
from rota.model.cause import cause
from rota.model.job import JobFilter, JobId
from rota.store.protocol import Store
from rota.worker import Worker
from tests.store.factories import until

Send = Task[[int], None, None]


@pytest.fixture
def app(store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rota]:
    """An app whose actions go on in small steps."""
    del store  # it made the tables
    monkeypatch.setattr("rota.app.bulk.BATCH", 3)
    monkeypatch.setattr("rota.app.bulk.REACH", 5)
    with Rota(store_url) as app:
        yield app


@pytest.fixture
def send(app: Rota) -> Send:
    """A task that fails with numbers under ten."""

    @app.task(name="send", max_attempts=1)
    def send(number: int) -> None:
        if number < 10:
            raise KeyError(number)

    return send


def drain(app: Rota) -> None:
    """Run the jobs there are."""
    Worker(app, WorkerConfig(drain=True)).run()


def last(app: Rota) -> JobId:
    """The newest job."""
    return app.database.run(app.database.store.last_job())


def bulk(app: Rota, kind: Kind, **found_by: str) -> Bulk:
    """An action on all jobs there are."""
    return Bulk(app, kind, matching(found_by), last(app))


def begin(app: Rota, action: str, **found_by: str) -> JobId:
    """Enqueue the job that acts on all jobs there are."""
    store = app.database.store
    asked = order("default", action, found_by, last(app), None)
    deed = Deed("ada", f"jobs-{action}", found_by)
    recorded = store.audit.recorded(
        store.enqueue(asked), lambda stored: deed._replace(job=stored[0])
    )
    [job] = app.database.run(recorded)
    return job


def deed(app: Rota) -> AuditRecord:
    """What was done last."""
    [found] = app.admin.audit(most=1)
    return found


@pytest.mark.both
def test_everything_that_matches(app: Rota, send: Send) -> None:
    """The job retries what was discarded, in steps, and nothing else; the audit counts."""
    send.enqueue_many([(number,) for number in range(14)])
    drain(app)
    assert app.jobs.count(state="discarded") == 10
    job = begin(app, "retry", state="discarded", task="send")
    later = send.enqueue(99)
    drain(app)
    [record] = app.jobs.get(job)
    assert record.state is State.COMPLETED
    assert record.progress is not None
    assert record.progress.message == "10 changed"
    assert (deed(app).changed, deed(app).job) == (10, job)
    # They ran, and were discarded once more.
    assert {each.attempt for each in app.jobs.list(state="discarded")} == {1}
    assert later.status is State.COMPLETED


@pytest.mark.both
def test_what_is_left_to_flows(app: Rota, send: Send) -> None:
    """A job that its flow's retry would run again is not retried; the progress counts such jobs."""
    with app.flow("letters") as flow:
        flow.map(send, [0, 2])
    send.enqueue_many([(4,), (6,), (8,)])
    drain(app)
    job = begin(app, "retry", state="discarded")
    drain(app)
    [record] = app.jobs.get(job)
    assert record.progress is not None
    assert record.progress.message == "3 changed, 2 left to their flows"
    assert flow.handle.retry() == 2


@pytest.mark.both
@pytest.mark.parametrize(
    ("kind", "state", "left"),
    [
        (CANCEL, None, {State.CANCELLED: 12}),
        (CANCEL, "scheduled", {State.CANCELLED: 4, State.AVAILABLE: 8}),
        (DELETE, "available", {State.SCHEDULED: 4}),
        (RETRY, "scheduled", {State.AVAILABLE: 12}),
    ],
)
def test_states(
    app: Rota, send: Send, kind: Kind, state: str | None, left: dict[State, int]
) -> None:
    """Those of the state that is asked for, else all that the action is about."""
    send.enqueue_many([(number,) for number in range(8)])
    send.using(delay=3600).enqueue_many([(number,) for number in range(4)])
    action = bulk(app, kind, queue="default", **({"state": state} if state else {}))
    many = 12 if state is None else 4 if state == "scheduled" else 8
    assert action.count() == Count(many, many, exact=True)
    for page in action.pages():
        app.database.run(action.act(page))
    [queue] = app.admin.queues()
    assert queue.counts == left


@pytest.mark.both
def test_it_goes_on_where_it_was(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies loses and repeats no step: a job that fails again is not retried twice."""
    runs = Counter[int]()

    @app.task(name="fail", max_attempts=1)
    def fail(number: int) -> None:
        runs[number] += 1
        raise KeyError(number)

    fail.enqueue_many([(number,) for number in range(10)])
    drain(app)
    job = begin(app, "retry", state="discarded")
    whole, positions = Bulk.pages, list[str | None]()

    def dying(self: Bulk, position: str | None = None) -> Iterator[Page]:
        positions.append(position)
        for number, page in enumerate(whole(self, position)):
            if number == 2 and len(positions) == 1:
                # Those of the steps before have run, and are discarded again.
                until(lambda: app.jobs.count(state="discarded") == 10 or None)
                raise Retry(after=0)
            yield page

    monkeypatch.setattr(Bulk, "pages", dying)
    drain(app)
    assert positions[0] is None
    assert len(positions) == 2
    assert runs == dict.fromkeys(range(10), 2)
    assert deed(app).changed == 10
    assert app.jobs.get(job)[0].state is State.COMPLETED


def test_it_can_be_cancelled(app: Rota, send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two steps; what is done stays done."""
    send.using(queue="other").enqueue_many([(number,) for number in range(10)])
    job = begin(app, "delete", queue="other", state="available")
    progress = Context.progress

    def asked(self: Context, fraction: float, message: str = "") -> None:
        progress(self, fraction, message)
        app.jobs.cancel(job)
        assert self.wait_cancelled(30)

    monkeypatch.setattr(Context, "progress", asked)
    Worker(app, WorkerConfig(drain=True, session_timeout=1.0)).run()
    assert app.jobs.get(job)[0].state is State.CANCELLED
    assert deed(app).changed == 3
    assert app.jobs.count(queue="other") == 7


def test_not_itself(app: Rota, send: Send) -> None:
    """Neither the job that does it nor what came after it was asked for."""
    send.using(delay=3600).enqueue_many([(number,) for number in range(4)])
    newest = last(app)
    job = begin(app, "cancel", queue="default")
    action = Bulk(app, CANCEL, matching({"queue": "default"}), JobId(newest + 9), besides=job)
    assert [each for page in action.pages() for each in page.jobs] == [4, 3, 2, 1]
    action = Bulk(app, CANCEL, matching({"queue": "default"}), newest)
    assert [each for page in action.pages() for each in page.jobs] == [4, 3, 2, 1]
    drain(app)
    assert app.jobs.get(job)[0].state is State.COMPLETED
    assert app.jobs.count(state="cancelled") == 4


def test_jobs_that_are_gone(app: Rota, send: Send) -> None:
    """What has moved on since it was found is left alone."""
    send.enqueue_many([(number,) for number in range(6)])
    action = bulk(app, CANCEL, state="available")
    pages = list(action.pages())
    app.jobs.delete([6, 5])
    drain(app)
    assert {len(app.database.run(action.act(page))) for page in pages} == {0}


def test_causes(app: Rota, send: Send) -> None:
    """Discarded jobs of one cause alone."""

    @app.task(name="pay", max_attempts=1)
    def pay(number: int) -> None:
        raise (KeyError if number % 2 else ValueError)(number)

    pay.enqueue_many([(number,) for number in range(8)])
    send.enqueue(1)
    drain(app)
    why = cause(app.jobs.get(2)[0])
    assert why.startswith("KeyError in app/test_bulk.py:")
    action = bulk(app, DELETE, state="discarded", task="pay", cause=why)
    assert action.count() == Count(4, 9, exact=True)
    assert [each for page in action.pages() for each in page.jobs] == [8, 6, 4, 2]


def test_a_cause_with_a_long_message(app: Rota) -> None:
    """The cause that the page of groups shows for a job also finds it where the frame is cut off."""

    @app.task(name="pay", max_attempts=1)
    def pay() -> None:
        raise ValueError("x" * 5_000)

    pay.enqueue()
    drain(app)
    [shown] = app.database.run(app.database.store.list_jobs(JobFilter(brief=True)))
    action = bulk(app, DELETE, state="discarded", task="pay", cause=cause(shown))
    assert action.count() == Count(1, 1, exact=True)


@pytest.mark.both
def test_args_and_keys(app: Rota) -> None:
    """Jobs are found by one arg, and by the beginning of a unique key."""
    pay = app.task(name="pay", unique="order:{number}")(lambda number: number)
    pay.enqueue_many([(number,) for number in (1, 10, 11, 20)])
    for found_by, jobs in (({"arg": "number=10"}, [2]), ({"subject": "order:1*"}, [3, 2, 1])):
        action = bulk(app, DELETE, **found_by)
        assert action.count() == Count(len(jobs), 4, exact=True)
        found = [each for page in action.pages() for each in page.jobs]
        assert sorted(found, reverse=True) == jobs


@pytest.mark.both
def test_counts_are_bounded(app: Rota, send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters know all of a state and a queue; else so many are counted, among so many."""
    send.enqueue_many([(number,) for number in range(20)])
    assert bulk(app, DELETE, queue="default").count() == Count(20, 20, exact=True)
    assert bulk(app, DELETE, task="send", state="available").count() == Count(20, 20, exact=True)
    monkeypatch.setattr("rota.app.bulk.COUNTED", 7)
    assert bulk(app, DELETE, task="send", state="available").count() == Count(7, 20, exact=False)
    monkeypatch.setattr("rota.app.bulk.LOOKED_AT", 10)
    assert bulk(app, DELETE, task="none", state="available").count() == Count(0, 20, exact=False)
    assert bulk(app, CANCEL, task="none").count() == Count(0, 20, exact=False)
    monkeypatch.setattr("rota.app.bulk.LOOKED_AT", 100)
    assert bulk(app, CANCEL, task="none").count() == Count(0, 20, exact=True)


def test_what_is_counted_is_said() -> None:
    """A bound is not passed off as a number."""
    assert str(Count(1, 9, exact=True)) == "1 job"
    assert str(Count(1234, 9999, exact=True)) == "1,234 jobs"
    assert str(Count(10_000, 99_999, exact=False)) == "more than 10,000 of 99,999 jobs"
    assert str(Count(12, 99_999, exact=False)) == "at least 12 of 99,999 jobs"
    assert str(Count(0, 99_999, exact=False)) == "some of 99,999 jobs"


@pytest.mark.parametrize(
    ("kind", "found_by", "message"),
    [
        (DELETE, {}, "say which jobs"),
        (DELETE, {"queue": ""}, "say which jobs"),
        (DELETE, {"state": "running"}, "cannot be deleted"),
        (CANCEL, {"state": "completed"}, "cannot be cancelled"),
        (RETRY, {"state": "available"}, "cannot be retried"),
        (RETRY, {"state": "asleep"}, "is not a state"),
        (RETRY, {"arg": "number"}, "must be name=value"),
        (RETRY, {"queue": "\0"}, "queue"),
        (RETRY, {"subject": "\ud800"}, "subject"),
    ],
)
def test_impossible(app: Rota, kind: Kind, found_by: dict[str, str], message: str) -> None:
    """A filter that cannot be is refused before anything is done."""
    with pytest.raises(ConfigError, match=message):
        bulk(app, kind, **found_by)


def test_middleware_is_not_around_it(app: Rota, send: Send) -> None:
    """Users' middleware is written for users' tasks."""
    seen = []

    @app.around_run
    async def watch(context: Context, call_next: Callable[[], Any]) -> object:
        seen.append(context.task)
        return await call_next()

    send.enqueue(99)
    begin(app, "delete", state="discarded")
    drain(app)
    assert seen == ["send"]


@pytest.mark.usefixtures("send")
def test_it_names_no_queue(app: Rota) -> None:
    """A worker without queues takes those of its users' tasks; an app without tasks has none."""
    assert NAME not in app.tasks
    assert Worker(app)._configs[0].queues == ("default",)
    assert NAME in app.tasks
    with pytest.raises(ConfigError, match="this app has no tasks"):
        Worker(Rota(app.url))


@pytest.mark.usefixtures("send")
def test_several_apps(app: Rota) -> None:
    """Each has been the first of a worker; together they have one such task."""
    with Rota(app.url) as other:
        other.task(name="pay")(lambda: None)
        Worker(other)
        Worker(app)
        begin(app, "delete", task="send", state="available")
        Worker([app, other], WorkerConfig(drain=True)).run()
    assert deed(app).job is not None
    assert app.jobs.get(deed(app).job or 0)[0].state is State.COMPLETED


def test_without_its_deed(app: Rota, send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose deed is not kept any more is discarded, and does nothing."""
    send.using(queue="other").enqueue(1)
    job = begin(app, "delete", queue="other")
    monkeypatch.setattr("rota.store.audit.KEPT", 0)
    app.database.run(app.database.store.audit.add(Deed("bob", "queue-pause", {})))
    drain(app)
    [record] = app.jobs.get(job)
    assert record.state is State.DISCARDED
    assert app.jobs.count(queue="other") == 1


def test_what_has_moved_on_stays(app: Rota, send: Send) -> None:
    """A job that was found in one state and is in another one when its turn comes is left alone."""
    send.enqueue_many([(number,) for number in range(3)])
    action = bulk(app, DELETE, state="available")
    pages = list(action.pages())
    drain(app)
    assert [len(app.database.run(action.act(page))) for page in pages] == [0, 0]
    assert app.jobs.count(state="discarded") == 3
