"""A drain follows a job to its successor, in the test's transaction."""

from collections.abc import Sequence
from typing import Any

import pytest

from rota import Context, FinishedJob, Rota, State, SuccessorNotFound
from rota.events import JobsEnqueued
from rota.testing import Kit


@pytest.fixture
def given() -> list[Any]:
    """What successors were given."""
    return []


@pytest.fixture(autouse=True)
def chain(app: Rota, given: list[Any]) -> None:
    """A job with a successor for each end, one of which is unique and in a queue of its own."""

    @app.task(name="last", queue="after", unique="n:{number}")
    def last(number: int) -> None:
        given.append(number)

    @app.task(name="alarm")
    def alarm(job: FinishedJob) -> None:
        given.append((job.args["number"], job.error and job.error.message))

    @app.task(name="work", on_success="last", on_failure="alarm", max_attempts=1)
    def work(number: int) -> int:
        if number == 3:
            message = "three"
            raise ValueError(message)
        return 10 * number


def tasks(jobs: Sequence[Any]) -> list[str]:
    """Their names."""
    return [job.task for job in jobs]


def test_a_drain_goes_on(kit: Kit, app: Rota, given: list[Any]) -> None:
    """It runs successors, too, and `assert_enqueued` finds them by what they were given."""
    work = app.tasks["work"]
    work.enqueue(1)
    work.enqueue(3)
    with app.events.collect(JobsEnqueued) as told:
        ran = kit.drain(raises=False)
    assert tasks(ran) == ["work", "work", "last", "alarm"] or set(tasks(ran[2:])) == {
        "last",
        "alarm",
    }
    assert sorted(given, key=str) == [(3, "three"), 10]
    assert {event.task for event in told} == {"last", "alarm"}
    kit.assert_enqueued("last", number=10, queue="after", state=State.COMPLETED)
    kit.refute_enqueued("last", number=30)


def test_a_drain_that_does_not(kit: Kit, app: Rota, given: list[Any]) -> None:
    """`recursive=False` leaves them."""
    app.tasks["work"].enqueue(1)
    [run] = kit.drain(recursive=False)
    assert run.task == "work"
    assert [job.id for job in kit.jobs("last")] == list(run.successors)
    kit.assert_enqueued("last", number=10, state=State.AVAILABLE)
    assert given == []


def test_a_crash(kit: Kit, app: Rota, given: list[Any]) -> None:
    """A job that ran twice, its worker lost before the end was written, has one successor."""
    app.tasks["work"].enqueue(1)
    assert tasks(kit.drain(crash="before_settle", queues=("default",))) == ["work"]
    kit.assert_enqueued("last", count=1)
    kit.drain()
    assert given == [10]


def test_a_unique_key_is_the_tests_own(kit: Kit, app: Rota, conn: Any) -> None:
    """Its row has a key that no other test has, so it waits for none; the test sees the task's."""
    app.tasks["work"].enqueue(1)
    kit.drain(queues=("default",))
    [job] = kit.jobs("last")
    assert app.job(job.id).record().unique_key == "n:10"
    table = "rota_job" if app.url.startswith("sqlite") else "rota.unique_key"
    name = "unique_key" if app.url.startswith("sqlite") else "key"
    [(key,)] = conn.execute(f"SELECT {name} FROM {table} WHERE {name} LIKE '%n:10'").fetchall()
    assert key.startswith("test-")


def test_a_job_transaction(kit: Kit, app: Rota, given: list[Any]) -> None:
    """It has the successor, and undoes it with the rest."""

    @app.task(name="ship", on_success="last", on_failure="alarm", max_attempts=1)
    def ship(ctx: Context, number: int) -> None:
        with ctx.transaction() as tx:
            tx.result(number)
            if number == 3:
                message = "three"
                raise ValueError(message)

    ship.enqueue(5)
    ship.enqueue(3)
    with app.events.collect(JobsEnqueued) as told:
        kit.drain(raises=False)
    assert sorted(given, key=str) == [(3, "three"), 5]
    assert sorted(event.task for event in told) == ["alarm", "last"]


def test_a_choice_that_is_not_known(kit: Kit, app: Rota, given: list[Any]) -> None:
    """It fails the attempt as in a worker."""
    app.tasks["work"].using(on_success="elsewhere").enqueue(1)
    with pytest.raises(SuccessorNotFound, match="its successor 'elsewhere'"):
        kit.drain()
    kit.drain()
    assert given == [(1, given[0][1])]


def test_inline(kit: Kit, app: Rota, given: list[Any]) -> None:
    """Successors run as soon as the job has ended."""
    with kit.inline(raises=False):
        app.tasks["work"].enqueue(1)
        assert given == [10]
        app.tasks["work"].enqueue(3)
    assert given == [10, (3, "three")]
