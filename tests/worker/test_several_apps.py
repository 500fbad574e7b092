"""Several apps in one worker: one session and one claimer, and to each app what is its own."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rota import (
    PROVIDED,
    ConfigError,
    Context,
    CronEntryExists,
    Rota,
    State,
    TaskAlreadyRegistered,
    WorkerConfig,
)
from rota.events import JobCompleted, JobsEnqueued, JobStarted, TaskUnknown, WorkerStarted
from rota.model.job import JobSpec, Order
from rota.worker import Worker
from tests.fixtures.workers import LONG, until

if TYPE_CHECKING:
    from rota.store.protocol import Store

NAMES = ("shop", "mail")


@pytest.fixture
def apps(store: "Store", store_url: str) -> Iterator[list[Rota]]:
    """Two apps of one database."""
    del store  # it made the tables
    with ExitStack() as stack:
        yield [stack.enter_context(Rota(store_url)) for _ in NAMES]


def drained(apps: list[Rota], **config: Any) -> None:
    """Run a worker of these apps until nothing is left to do."""
    worker = Worker(apps, WorkerConfig(drain=True, **config))
    asyncio.run(asyncio.wait_for(worker.arun(signals=False), LONG))


def surround(app: Rota, name: str, said: list[str]) -> None:
    """Give an app a lifespan, middleware and subscribers, which say what they see."""

    @app.lifespan(name="engine")
    async def engine() -> AsyncIterator[str]:
        said.append(f"enter {name}")
        yield f"{name}'s engine"
        said.append(f"leave {name}")

    @app.around_run
    async def on_loop(ctx: Context, call_next: Callable[[], Any]) -> Any:
        said.append(f"{name} around {ctx.task}")
        return await call_next()

    @app.around_run
    def in_thread(ctx: Context, call_next: Callable[[], Any]) -> Any:
        said.append(f"{name} in the thread of {ctx.task}")
        return call_next()

    @app.on(JobCompleted)
    def completed(event: JobCompleted) -> None:
        said.append(f"{name} hears of {event.job.task}")

    @app.on(JobStarted)
    async def started(event: JobStarted) -> None:
        said.append(f"{name} learns of {event.job.task}")


def test_each_job_has_its_own_app_around_it(apps: list[Rota]) -> None:
    """Middleware, lifespans, resources and subscribers are those of the app that has the task."""
    said: list[str] = []
    handles: list[Any] = []

    def furnish(app: Rota, name: str) -> None:
        @app.task(name=f"{name}.send", store_result=True)
        def send(engine: str = PROVIDED) -> str:
            return engine

        @app.task(name=f"{name}.gather", batch=10)
        async def gather(numbers: list[int], engine: str = PROVIDED) -> None:
            said.append(f"{engine} for {numbers}")

        handles.append(send.enqueue())
        gather.enqueue(len(handles))

    for app, name in zip(apps, NAMES, strict=True):
        surround(app, name, said)
        furnish(app, name)
    drained(apps)
    assert [handle.result(timeout=0) for handle in handles] == ["shop's engine", "mail's engine"]
    assert said[:2] == ["enter shop", "enter mail"]
    assert said[-2:] == ["leave mail", "leave shop"]
    for name, number in (("shop", 1), ("mail", 2)):
        about = sorted(line for line in said[2:-2] if line.startswith(name))
        assert about == [
            f"{name} around {name}.gather", f"{name} around {name}.send",
            f"{name} hears of {name}.gather", f"{name} hears of {name}.send",
            f"{name} in the thread of {name}.send",
            f"{name} learns of {name}.gather", f"{name} learns of {name}.send",
            f"{name}'s engine for [{number}]",
        ]  # fmt: skip


def test_one_session(apps: list[Rota], caplog: pytest.LogCaptureFixture) -> None:
    """What concerns the worker is told to each app, once; and logged once."""
    started: list[tuple[str, WorkerStarted]] = []
    both: list[WorkerStarted] = []
    for app, name in zip(apps, NAMES, strict=True):
        app.task(name=f"{name}.send", queue=name)(lambda: None)
        app.events.subscribe(WorkerStarted, lambda event, name=name: started.append((name, event)))  # type: ignore[misc]
        app.on(WorkerStarted)(both.append)
    with caplog.at_level("INFO", "rota"):
        drained(apps)
    [(first, event), (second, other)] = started
    assert (first, second) == NAMES
    assert other is event
    assert event.queues == ("mail", "shop")
    assert both == [event]
    lines = [record.getMessage() for record in caplog.records if record.name == "rota"]
    assert [line for line in lines if line.startswith("worker started")] == [
        f"worker started: session {event.session}, queues mail, shop"
    ]


def test_a_task_of_neither(apps: list[Rota], caplog: pytest.LogCaptureFixture) -> None:
    """A job whose task none of the apps has is passed on, told to both, and logged once."""
    told: list[str] = []
    for app, name in zip(apps, NAMES, strict=True):
        app.task(name=f"{name}.send")(lambda: None)
        app.events.subscribe(TaskUnknown, lambda _, name=name: told.append(name))  # type: ignore[misc]
    store = apps[0].database.store
    apps[0].database.run(store.enqueue(Order(JobSpec("bank.send"), ("{}",))))
    worker = Worker(apps, WorkerConfig(poll=0.05))
    thread = threading.Thread(target=lambda: asyncio.run(worker.arun(signals=False)))
    with caplog.at_level("WARNING", "rota"):
        thread.start()
        try:
            until(lambda: len(told) == 2, "the job to be passed on")
        finally:
            worker.stop()
            thread.join(LONG)
    assert told == ["shop", "mail"]
    said = [record for record in caplog.records if "no task named" in record.getMessage()]
    assert len(said) == 1


def test_transactions(apps: list[Rota]) -> None:
    """A handler of either app may complete its job in a transaction."""
    handles = []
    for app, name in zip(apps, NAMES, strict=True):

        @app.task(name=f"{name}.pay", store_result=True)
        async def pay(ctx: Context) -> str:
            async with ctx.transaction() as tx:
                tx.result(ctx.task)
            return ctx.task

        handles.append(pay.enqueue())
    drained(apps)
    assert [handle.result(timeout=0) for handle in handles] == ["shop.pay", "mail.pay"]


def test_cron_entries(apps: list[Rota]) -> None:
    """Both apps' entries are written, each with what its own app says of the queue."""
    for app, name in zip(apps, NAMES, strict=True):
        app.cron("@daily")(app.task(name=f"{name}.digest", queue="night")(lambda: None))
    apps[0].queue("night", max_attempts=2)
    apps[1].queue("night", max_attempts=7)
    drained(apps)
    entries = {record.entry.name: record.entry.max_attempts for record in apps[0].cron.entries()}
    assert entries == {"shop.digest": 2, "mail.digest": 7}


def test_enqueued_events_go_to_the_task_s_app(apps: list[Rota]) -> None:
    """What a handler enqueues is told to the app of the task that it enqueues."""
    shop, mail = apps
    told: list[tuple[str, str]] = []
    for app, name in zip(apps, NAMES, strict=True):
        app.events.subscribe(
            JobsEnqueued,
            lambda event, name=name: told.append((name, event.task)),  # type: ignore[misc]
        )
    send = mail.task(name="mail.send")(lambda: None)

    @shop.task(name="shop.order")
    def order() -> None:
        send.enqueue()

    order.enqueue()
    drained(apps)
    assert told == [("shop", "shop.order"), ("mail", "mail.send")]


def test_the_smaller_number_of_a_queue(apps: list[Rota]) -> None:
    """Where both apps bound what a worker runs of a queue at once, both bounds hold."""
    running, most = 0, 0

    def declare(app: Rota, name: str) -> None:
        @app.task(name=name, queue="slow")
        async def slow() -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            running -= 1

        slow.enqueue_many([()] * 10)

    for app, name, bound in zip(apps, NAMES, (5, 2), strict=True):
        declare(app, name)
        app.queue("slow", concurrency=bound)
    drained(apps)
    assert most == 2


def test_what_is_set_for_a_queue(apps: list[Rota]) -> None:
    """What is set for a queue in the database counts for the jobs of both apps."""
    apps[0].queue("brief").set(retention={"completed": 0})
    jobs = [
        app.task(name=f"{name}.send", queue="brief")(lambda: None).enqueue()
        for app, name in zip(apps, NAMES, strict=True)
    ]
    drained(apps)
    assert apps[0].jobs.get(jobs) == []


def test_two_tasks_of_one_name(apps: list[Rota]) -> None:
    """Two apps with a task of one name are refused before anything is opened."""
    for app in apps:
        app.task(name="send")(lambda: None)
    with pytest.raises(
        TaskAlreadyRegistered, match=r"two apps have a task named 'send'.*a worker for each"
    ):
        Worker(apps)


def test_two_entries_of_one_name(apps: list[Rota]) -> None:
    """Two apps with a cron entry of one name are refused likewise."""
    for app, name in zip(apps, NAMES, strict=True):
        app.cron("@daily", name="digest")(app.task(name=name)(lambda: None))
    with pytest.raises(CronEntryExists, match="two apps have a cron entry named 'digest'"):
        Worker(apps)


def test_another_database(apps: list[Rota], tmp_path: Path) -> None:
    """An app of another database is refused before a session is opened or an entry written."""
    shop, _ = apps
    shop.cron("@daily")(shop.task(name="shop.send")(lambda: None))
    with Rota(f"sqlite:///{tmp_path}/other.db") as other:
        other.task(name="other.send")(lambda: None)
        with pytest.raises(ConfigError, match=r"two databases, .*other\.db.*--url"):
            drained([shop, other])
    assert shop.cron.entries() == []
    assert shop.admin.workers() == []


def test_one_database_by_two_urls(apps: list[Rota], store_url: str) -> None:
    """A database may be named in several ways."""
    shop, _ = apps
    done = threading.Event()
    shop.task(name="shop.send")(lambda: None)
    url = store_url
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        url = f"sqlite:///{path.parent}/../{path.parent.name}/{path.name}"
    else:
        url += "&application_name=mail" if "?" in url else "?application_name=mail"
    with Rota(url) as mail:
        job = mail.task(name="mail.send")(done.set).enqueue()
        drained([shop, mail])
        assert job.status is State.COMPLETED
    assert done.is_set()


def test_no_app() -> None:
    """Something else than apps is refused."""
    with pytest.raises(ConfigError, match="needs at least one app"):
        Worker([])
    with pytest.raises(ConfigError, match=r"of a rota\.Rota.*this is a str"):
        Worker("shop:rota")  # type: ignore[arg-type]


def test_an_app_that_is_named_twice(apps: list[Rota]) -> None:
    """It is one app all the same."""
    shop, _ = apps
    job = shop.task(name="shop.send")(lambda: None).enqueue()
    drained([shop, shop])
    assert job.status is State.COMPLETED
