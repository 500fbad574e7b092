"""Queues' defaults when jobs are enqueued: whose word holds."""

from datetime import timedelta
from typing import Any

import pytest

from rota import Backoff, JobRecord, Rota, State
from rota.errors import ConfigError
from tests.fixtures.workers import drained


def _nothing() -> None: ...


def stored(task: Any) -> tuple[int, float | None]:
    """What attempts and timeout a job of this task gets."""
    record: JobRecord = task.enqueue().record()
    return record.max_attempts, record.timeout


def says(app: Rota, **changes: float | None) -> None:
    """Set something for the queue `mail`, as `rota queues set` does."""
    app.database.run(app.database.store.set_queue("mail", changes))


def test_each_of_the_five(app: Rota) -> None:
    """The caller, the task, the database, the declaration, Rota: the first who says it."""
    plain = app.task(name="plain", queue="mail")(_nothing)
    own = app.task(name="own", queue="mail", max_attempts=7, timeout=70)(_nothing)
    assert stored(plain) == (5, None)
    app.queue("mail", max_attempts=3, timeout=timedelta(seconds=30))
    assert stored(plain) == (3, 30)
    with Rota(app.url) as fresh:  # has not just looked up where to enqueue
        plain = fresh.task(name="plain", queue="mail")(_nothing)
        fresh.queue("mail", max_attempts=3, timeout=30)
        says(app, max_attempts=4)
        assert stored(plain) == (4, 30)
    with Rota(app.url) as fresh:
        plain = fresh.task(name="plain", queue="mail")(_nothing)
        own = fresh.task(name="own", queue="mail", max_attempts=7, timeout=70)(_nothing)
        fresh.queue("mail", max_attempts=3, timeout=30)
        says(app, timeout=40)
        for _ in range(2):  # the second one goes where the first one went
            assert stored(plain) == (4, 40)
            assert stored(own) == (7, 70)
            assert stored(own.using(max_attempts=2)) == (2, 70)
            assert stored(plain.using(timeout=1)) == (4, 1)
            assert stored(plain.using(queue="other")) == (5, None)
            assert stored(plain.using(queue="other").using(queue="mail")) == (4, 40)


@pytest.mark.parametrize(
    ("retry", "attempts"),
    [
        (None, 4),
        (Backoff(first=1), 4),
        (Backoff(attempts=9), 9),
        (Backoff(attempts=5), 5),
        (lambda _attempt, _error: 1.0, 4),
    ],
    ids=["nothing", "no attempts", "attempts", "as many as the default", "a function"],
)
def test_what_a_task_has_said(app: Rota, retry: Any, attempts: int) -> None:
    """A Backoff that names attempts has said it, also if they are five; others have not."""
    says(app, max_attempts=4)
    task = app.task(name="task", queue="mail", retry=retry)(_nothing)
    assert stored(task)[0] == attempts


@pytest.mark.parametrize("count", [2, 300])
@pytest.mark.parametrize("delay", [0, 60])
def test_many_at_once(app: Rota, count: int, delay: int) -> None:
    """Jobs that are enqueued together, copied or with a delay get the same."""
    task = app.task(name="task", queue="mail", timeout=70)(_nothing)
    app.queue("mail", max_attempts=3, timeout=30)
    says(app, max_attempts=4, timeout=40)
    for one, expected in ((task, (4, 70)), (task.using(max_attempts=2), (2, 70))):
        ids = one.using(delay=delay).enqueue_many([()] * count)
        found = app.database.run(app.database.store.get(ids))
        assert {(job.max_attempts, job.timeout) for job in found} == {expected}
        assert len(found) == count


@pytest.mark.asyncio
async def test_in_async_code(app: Rota) -> None:
    """The async methods give the same."""
    task = app.task(name="task", queue="mail")(_nothing)
    app.queue("mail", max_attempts=3)
    says(app, timeout=40)
    record = await (await task.aenqueue()).arecord()
    assert (record.max_attempts, record.timeout) == (3, 40)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_in_a_callers_transaction(app: Rota, end: str) -> None:
    """What is set holds for a job in a transaction; rolled back, there is no job."""
    task = app.task(name="task", queue="mail")(_nothing)
    says(app, max_attempts=4)

    def enqueue() -> Any:
        with app.transaction() as tx:
            job = task.using(conn=tx).enqueue()
            if end == "rollback":
                raise LookupError
        return job

    if end == "rollback":
        with pytest.raises(LookupError):
            enqueue()
        [queue] = app.database.run(app.database.store.queues())
        assert not queue.counts
    else:
        assert enqueue().record().max_attempts == 4


def test_a_setting_is_taken_back(app: Rota) -> None:
    """Then the declaration holds again."""
    says(app, max_attempts=4, timeout=40)
    says(app, max_attempts=None)
    app.queue("mail", max_attempts=3)
    assert stored(app.task(name="task", queue="mail")(_nothing)) == (3, 40)


def test_a_producer_hears_of_it_soon(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that goes on enqueueing uses what it was told for a moment, then asks again."""
    task = app.task(name="task", queue="mail")(_nothing)
    assert stored(task) == (5, None)
    says(app, max_attempts=4)
    monkeypatch.setattr("rota.store.postgres.enqueue.FRESH", 0.0)
    assert stored(task) == (4, None)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (" ", {}, "queue: must be a name"),
        ("mail", {"concurrency": 0}, "concurrency"),
        ("mail", {"max_attempts": 0}, "max_attempts"),
        ("mail", {"timeout": -1}, "timeout"),
        ("mail", {"timeout": "5s"}, "timeout"),
        ("mail", {"retention": -1}, "retention"),
        ("mail", {"retention": {"running": 1}}, "retention"),
    ],
)
def test_a_declaration_that_cannot_be(
    app: Rota, name: str, options: dict[str, Any], words: str
) -> None:
    """It is refused where it is made, and leaves nothing."""
    with pytest.raises(ConfigError, match=words):
        app.queue(name, **options)
    assert app.queues.declared == {}


def test_a_queue_is_declared_once(app: Rota) -> None:
    """Two places that say different things would be a riddle."""
    app.queue("mail", timeout=5)
    with pytest.raises(ConfigError, match="'mail' is already declared"):
        app.queue("mail", max_attempts=2)


def test_pausing(app: Rota) -> None:
    """A handle declares nothing, stops and starts the queue, and says whether that was news."""
    mail = app.queue("mail")
    app.queue("mail", max_attempts=2)
    assert mail.pause()
    assert not app.queue("mail").pause()

    @app.task(name="job", queue="mail")
    async def job() -> None: ...

    job.enqueue()
    assert not app.database.run(app.database.store.look(["mail"])).available
    assert mail.resume()
    assert not mail.resume()
    assert app.database.run(app.database.store.look(["mail"])).available
    drained(app)
    with pytest.raises(ConfigError):
        app.queue("")


@pytest.mark.asyncio
async def test_pausing_in_async_code(app: Rota) -> None:
    """The same, awaited."""
    mail = app.queue("mail")
    assert [await mail.apause(), await mail.apause()] == [True, False]
    assert [await mail.aresume(), await mail.aresume()] == [True, False]


def test_another_database_is_another_matter(app: Rota, tmp_path: Any) -> None:
    """What was heard of one database does not hold in the next one."""
    assert app.queues.learn(app.database.run(app.database.store.queue_settings())) is False
    says(app, concurrency=2)
    assert app.queues.learn(app.database.run(app.database.store.queue_settings())) is True
    assert app.queues.concurrency() == {"mail": 2}
    app.use(f"sqlite:///{tmp_path}/next.db")
    assert app.queues.concurrency() == {}


def test_a_cancelled_job_stays_as_declared(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle tells what the code says of the queues; the store asks the database first."""
    asked: list[object] = []
    made = app.database.store.cancel

    def spy(jobs: Any, keep: object) -> Any:
        asked.append(keep)
        return made(jobs)

    app.queue("mail", retention=5)
    app.queue("paint", retention={"discarded": 5})
    job = app.task(name="task", queue="mail")(_nothing).enqueue()
    monkeypatch.setattr(app.database.store, "cancel", spy)
    assert job.cancel() is State.CANCELLED
    assert asked == [{"mail": 5}]
