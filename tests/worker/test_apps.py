"""Several applications in one database, with jobs in one queue; and tasks that not all workers know."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from rota import Limit, Rota, State, Task
from rota.events import TaskUnknown
from rota.model.job import JobSpec, Order
from tests.fixtures.workers import until, working

if TYPE_CHECKING:
    from rota.store.protocol import Store

pytestmark = pytest.mark.both

NAMES = ("shop", "post", "bank")


@pytest.fixture
def apps(store: "Store", store_url: str) -> Iterator[list[Rota]]:
    """Three applications, each with a task of its own, in one database."""
    del store  # it made the tables
    with ExitStack() as stack:
        yield [stack.enter_context(Rota(store_url)) for _ in NAMES]


@pytest.fixture
def passed(apps: list[Rota]) -> "Counter[int]":
    """How often each job was passed on by a worker that did not know its task."""
    counted: Counter[int] = Counter()
    for app in apps:
        app.on(TaskUnknown)(lambda event: counted.update([event.job.id]))
    return counted


def declare(apps: list[Rota], done: "Counter[str]", **options: Any) -> list[Task[..., Any, Any]]:
    """The task of each."""

    def task(app: Rota, name: str) -> Task[..., Any, Any]:
        async def send(number: int) -> None:
            done[f"{name} {number}"] += 1

        declared: Task[..., Any, Any] = app.task(name=f"{name}.send", **options)(send)
        return declared

    return [task(app, name) for app, name in zip(apps, NAMES, strict=True)]


@pytest.mark.parametrize("count", [15, 500])
@pytest.mark.parametrize("before", [True, False])
def test_applications_that_share_a_queue(
    apps: list[Rota], passed: "Counter[int]", count: int, *, before: bool
) -> None:
    """All jobs are done promptly, once, by their own application; none is passed on more than once."""
    done: Counter[str] = Counter()
    tasks = declare(apps, done)
    each = [{"number": number} for number in range(count)]
    with ExitStack() as stack:
        if before:
            for task in tasks:
                task.enqueue_many(each)
        for app in apps:
            stack.enter_context(working(app))
        began = time.monotonic()
        if not before:
            for task in tasks:
                task.enqueue_many(each)
        until(lambda: len(done) == len(NAMES) * count)
        took = time.monotonic() - began
    assert set(done.values()) == {1}
    assert set(passed.values()) <= {1}
    assert took < 4, "it was five seconds for each time that a job was passed round"


def test_jobs_one_after_the_other(apps: list[Rota], passed: "Counter[int]") -> None:
    """A worker that is asleep is woken for a job that another one has passed on."""
    done: Counter[str] = Counter()
    tasks = declare(apps, done)
    slowest = 0.0
    with ExitStack() as stack:
        for app in apps:
            stack.enter_context(working(app))
        for number in range(30):
            began = time.monotonic()
            tasks[number % 3].enqueue(number)
            until(partial(done.get, f"{NAMES[number % 3]} {number}"))
            slowest = max(slowest, time.monotonic() - began)
    assert set(passed.values()) <= {1}
    assert slowest < 0.8, "a look once a second found it"


def test_jobs_with_limits(apps: list[Rota], passed: "Counter[int]") -> None:
    """A limit over all applications holds, and its jobs are done as well."""
    done: Counter[str] = Counter()
    tasks = declare(apps, done, limit=Limit("all", running=2))
    with ExitStack() as stack:
        for task in tasks:
            task.enqueue_many([{"number": number} for number in range(20)])
        for app in apps:
            stack.enter_context(working(app))
        until(lambda: len(done) == 60)
    assert set(done.values()) == {1}
    assert set(passed.values()) <= {1}


def test_a_rolling_deploy(apps: list[Rota], passed: "Counter[int]") -> None:
    """A task that only new workers know is done by these; once all know it, nothing is passed on."""
    old, new, _ = apps
    done: Counter[str] = Counter()
    for app in (old, new):

        @app.task(name="known")
        async def known() -> None: ...

    @new.task(name="new")
    async def send(number: int) -> None:
        done[str(number)] += 1

    with working(old):
        first = send.enqueue(1)
        until(lambda: passed[first.id])
        with working(new):
            until(lambda: done["1"])
            send.enqueue_many([{"number": number} for number in range(2, 100)])
            until(lambda: len(done) == 99)
    passed.clear()
    with working(new):
        send.enqueue_many([{"number": number} for number in range(100, 200)])
        until(lambda: len(done) == 199)
    assert not passed


def facts_of_tasks(app: Rota) -> list[tuple[str, str, int, tuple[int, ...]]]:
    """Queue, task, jobs and the workers that know it, of each task whose jobs were passed on."""
    told = app.database.run(app.database.store.health()).work.passed_on
    return [(facts.queue, facts.task, facts.jobs, facts.knowing) for facts in told]


def test_a_task_that_no_worker_knows(apps: list[Rota], passed: "Counter[int]") -> None:
    """Its jobs are passed on once, and then left alone, while the others are done."""
    app = apps[0]
    done: Counter[str] = Counter()
    [task, *_] = declare(apps, done)
    order = Order(JobSpec(task="not.here"), ["{}"] * 40)
    jobs = app.database.run(app.database.store.enqueue(order))
    with working(app):
        task.enqueue_many([{"number": number} for number in range(50)])
        until(lambda: len(done) == 50 and len(passed) == 40)
        task.enqueue_many([{"number": number} for number in range(50, 80)])
        until(lambda: len(done) == 80)
        expected = [("default", "not.here", 40, ())]
        until(lambda: facts_of_tasks(app) == expected)  # the event comes before the commit
    assert set(passed.values()) == {1}
    assert {app.job(job).status for job in jobs} == {State.AVAILABLE}
    assert app.job(jobs[0]).record().attempt == 0


def test_which_tasks_a_worker_knows(apps: list[Rota], passed: "Counter[int]") -> None:
    """It writes them down when it starts: a task that it knows is not one that no worker knows."""
    done: Counter[str] = Counter()
    _, post, _ = declare(apps, done)
    app = apps[0]
    with working(app), working(apps[1], queues=("elsewhere",)):
        job = post.enqueue(1)
        until(lambda: passed[job.id])
        until(lambda: job.status is State.AVAILABLE)
        [facts] = app.database.run(app.database.store.health()).work.passed_on
        sessions = app.database.run(app.database.store.workers())
    [knowing] = [session.id for session in sessions if session.queues == ("elsewhere",)]
    assert facts.knowing == (knowing,)
