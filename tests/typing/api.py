"""What type checkers know of the public API: mypy runs on this file, nothing else does.

Each `type: ignore` names the error that the line must have: with `warn_unused_ignores` (part of
`--strict`) it would be an error of its own if the wrong call were accepted.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, assert_type

from rota import (
    PROVIDED,
    BatchContext,
    BatchTask,
    Change,
    Context,
    Discard,
    EnqueueCall,
    Enqueued,
    HeldJob,
    JobHandle,
    JobId,
    JobRecord,
    QueueRecord,
    Rota,
    State,
    Task,
)
from rota.events import JobDiscarded, JobFailed, JobSettled
from rota.relay import RedisStream

if TYPE_CHECKING:
    from collections.abc import Coroutine

rota = Rota("sqlite:///never-opened.db")


@rota.task
def double(number: int) -> int:
    """A task without options."""
    return 2 * number


@rota.task(queue="mail", store_result=True)
async def send_receipt(order: int, *, locale: str = "en") -> str:
    """An async task with options."""
    return f"{order} {locale}"


@rota.task(executor="process")
def render(path: str, ctx: Context | None = None) -> None:
    """A task that has a context."""


@rota.task(retry_on=(TimeoutError, ConnectionError), discard_on=FileNotFoundError)
def picky() -> None:
    """A task that says what is retried."""


def retrying() -> None:
    """What is retried are classes of exceptions, as `except` takes them."""
    assert_type(picky.enqueue(), JobHandle[None])
    rota.task(retry_on=KeyError)
    rota.task(retry_on="TimeoutError")  # type: ignore[call-overload]
    rota.task(discard_on=[OSError])  # type: ignore[call-overload]


def looking_and_acting() -> None:
    """Jobs are found by words, and acted on by these or by what was found."""
    assert_type(rota.jobs.list(state="discarded", task=double, limit=5), list[JobRecord])
    assert_type(rota.jobs.iterate(queue=rota.queue("mail")), Iterator[JobRecord])
    assert_type(rota.jobs.count(state=State.AVAILABLE, conn=object()), int)
    assert_type(rota.jobs.get([1, double.enqueue(2)]), list[JobRecord])
    assert_type(rota.jobs.retry(rota.jobs.list()), list[JobId])
    assert_type(rota.jobs.cancel(queue="mail", limit=None), dict[JobId, State])
    assert_type(rota.jobs.delete(4711), list[JobId])
    assert_type(rota.admin.migrate(to=12), list[int])
    assert_type(rota.admin.queues(), list[QueueRecord])
    assert_type(rota.admin.workers()[0].jobs, tuple[HeldJob, ...])
    assert_type(rota.queue("mail").clear(["discarded"]), dict[State, int])
    rota.jobs.list(colour="red")  # type: ignore[call-arg]
    rota.jobs.list(state=7)  # type: ignore[arg-type]
    rota.jobs.get("4711")  # type: ignore[arg-type]
    rota.jobs.cancel(queue="mail", conn=object())  # type: ignore[call-arg]


async def following() -> None:
    """One object for both loops."""
    for change in double.enqueue(2).changes():
        assert_type(change, Change)
    async for change in rota.job(1).changes(after="1-2"):
        assert_type(change.record, JobRecord)
    async for job in rota.jobs.aiterate():
        assert_type(job, JobRecord)
    assert_type(await rota.jobs.acancel([1]), dict[JobId, State])
    rota.job(1).changes(after=7)  # type: ignore[arg-type]


def direct_calls() -> None:
    """A task called like a function is the function."""
    assert_type(double(2), int)
    one: Coroutine[Any, Any, str] = send_receipt(1, locale="it")
    double("2")  # type: ignore[arg-type]
    double()  # type: ignore[call-arg]
    other = send_receipt(1, "it")  # type: ignore[call-arg]
    del one, other


def enqueueing() -> None:
    """`enqueue` has the function's parameters, and the handle knows the result."""
    assert_type(double.enqueue(2), JobHandle[int])
    assert_type(send_receipt.enqueue(1, locale="it"), JobHandle[str])
    assert_type(render.enqueue("a.png"), JobHandle[None])
    assert_type(double.enqueue(2).result(timeout=5), int)
    assert_type(send_receipt.enqueue(1).result(), str)
    assert_type(double.enqueue(2).status, State)
    double.enqueue("2")  # type: ignore[arg-type]
    double.enqueue()  # type: ignore[call-arg]
    double.enqueue(1, 2)  # type: ignore[call-arg]
    double.enqueue(colour=2)  # type: ignore[call-arg]
    send_receipt.enqueue("1")  # type: ignore[arg-type]
    send_receipt.enqueue(1, locale=2)  # type: ignore[arg-type]


async def in_async_code() -> None:
    """The async twins are checked alike."""
    assert_type(await send_receipt.aenqueue(1), JobHandle[str])
    assert_type(await (await send_receipt.aenqueue(1)).aresult(), str)
    assert_type(await double.aenqueue_many([(1,), {"number": 2}]), Enqueued)
    await double.aenqueue("2")  # type: ignore[arg-type]
    await send_receipt.aenqueue()  # type: ignore[call-arg]


def with_options(conn: object) -> None:
    """`using` keeps the types of the task."""
    assert_type(double.using(priority=-5, delay=30).enqueue(2), JobHandle[int])
    assert_type(send_receipt.using(conn=conn).enqueue(1), JobHandle[str])
    double.using(queue="mail").enqueue("2")  # type: ignore[arg-type]
    double.using(priority="high")  # type: ignore[arg-type]
    double.using(at=7)  # type: ignore[arg-type]


def many() -> None:
    """`enqueue_many` gives ids."""
    assert_type(double.enqueue_many([(1,), (2,)]), Enqueued)
    double.enqueue_many(7)  # type: ignore[arg-type]


def declaring() -> None:
    """Options of a task are checked."""
    task: Task[[int], int, int] = rota.task(double.function)
    other: Task[[str], int, int] = rota.task(double.function)  # type: ignore[arg-type, assignment]
    del task, other
    rota.task(queue=7)  # type: ignore[call-overload]
    rota.task(colour="red")  # type: ignore[call-overload]
    assert_type(rota.job(7), JobHandle[Any])


@rota.task
def export(ctx: Context, rows: int) -> int:
    """Takes a context first."""
    return rows + ctx.attempt


def context_first() -> None:
    """A leading Context is no argument of enqueue, nor of a direct call."""
    assert_type(export.enqueue(7), JobHandle[int])
    assert_type(export(7), int)
    export.enqueue("7")  # type: ignore[arg-type]


@rota.cron("0 9 * * MON-FRI", timezone="Europe/Rome", missed="latest", jitter=30, args=(1,))
@rota.task
def nightly(number: int) -> str:
    """A task with a cron entry is the task."""
    return str(number)


def cron_entries() -> None:
    """A cron entry changes nothing of its task; only tasks have entries."""
    assert_type(nightly.enqueue(7), JobHandle[str])
    nightly.enqueue("7")  # type: ignore[arg-type]
    rota.cron("@daily")(double.function)  # type: ignore[type-var]
    rota.cron(7)  # type: ignore[arg-type]
    assert_type(rota.cron.run("nightly"), JobHandle[Any])
    rota.cron.add("other", "@daily", nightly, args={"number": 1}, due="at")


@rota.task(batch=100, within=0.5)
async def index(words: list[str]) -> None:
    """One call for many jobs."""


@rota.task(batch=10, store_result=True)
def weigh(words: list[str], ctx: BatchContext) -> list[int | Discard]:
    """The same in a thread, with a context and an outcome for each."""
    return [len(word) for word, _ in zip(words, ctx.jobs, strict=True)]


@rota.around_run
async def measure(job: Context | BatchContext, call_next: Callable[[], Awaitable[Any]]) -> Any:
    """Middleware keeps its type."""
    return job.task, await call_next()


@rota.around_enqueue
def guard(call: EnqueueCall, call_next: Callable[[EnqueueCall], list[JobId]]) -> list[JobId]:
    """The same around enqueue."""
    assert_type(call.using(priority=1).passing(order=1), EnqueueCall)
    return call_next(call)


@rota.on(JobFailed)
def note(event: JobFailed) -> None:
    """A subscriber keeps its type, and gets events of its kind."""
    assert_type(event.exception, str)


@rota.on(JobFailed)
async def anote(event: JobFailed) -> None:
    """An async subscriber, too."""
    assert_type(event.exception, str)


@rota.task(soft_timeout=5, timeout=10)
async def hurried(ctx: Context) -> bool:
    """A task with a soft timeout."""
    async with ctx.in_time():
        ctx.check_time()
    return ctx.hurry


def listening() -> None:
    """Collected events have the type that was asked for."""
    with rota.events.collect(JobDiscarded) as seen:
        assert_type(seen, list[JobDiscarded])
    rota.events.subscribe(JobDiscarded, note)
    rota.events.subscribe(JobDiscarded, anote)
    rota.events.subscribe(JobSettled, anote)  # type: ignore[arg-type]
    rota.events.subscribe(JobSettled, note)  # type: ignore[arg-type]


def batches() -> None:
    """`enqueue` takes one element, a direct call the list."""
    assert_type(weigh, BatchTask[str, list[int | Discard]])
    assert_type(index.enqueue("a"), JobHandle[Any])
    assert_type(index.using(delay=30).enqueue("a"), JobHandle[Any])
    assert_type(weigh(["a", "b"]), list[int | Discard])
    call: Coroutine[Any, Any, None] = index(["a"])
    del call
    index.enqueue(["a"])  # type: ignore[arg-type]
    weigh.enqueue(1)  # type: ignore[arg-type]
    weigh("a")  # type: ignore[arg-type]
    rota.task(batch="many")  # type: ignore[call-overload]
    rota.task(batch=2)(double.function)  # type: ignore[arg-type]


class Engine:
    """What a lifespan yields."""


@rota.lifespan
async def engine() -> AsyncIterator[Engine]:
    """An async lifespan."""
    yield Engine()


@rota.lifespan(name="fast", executor="process", timeout=5)
def fast_engine(engine: Engine = PROVIDED) -> Iterator[Engine]:
    """A sync one with options, which needs another one."""
    yield engine


@rota.lifespan
@contextmanager
def managed() -> Iterator[Engine]:
    """A function that gives a context manager."""
    yield Engine()


@rota.task
async def charge(order: int, engine: Engine = rota.PROVIDED, *, note: str = "-") -> int:
    """A handler that is given a resource."""
    del engine
    return order + len(note)


@rota.task(batch=10)
def charge_all(orders: list[int], engine: Engine = PROVIDED) -> None:
    """A batch handler that is given one."""


def lifespans(ctx: Context, batch: BatchContext) -> None:
    """Lifespans keep their types; resources are declared with theirs, and enqueue goes without."""
    assert_type(engine(), AsyncIterator[Engine])
    assert_type(charge.enqueue(7), JobHandle[int])
    assert_type(charge.enqueue(7, note="a"), JobHandle[int])
    charge.enqueue("7")  # type: ignore[arg-type]
    charge_all.enqueue(7)
    charge_all([7], engine=Engine())
    assert_type(ctx.resource(Engine), Engine)
    assert_type(batch.resource(Engine), Engine)
    assert_type(ctx.resource("fast"), Any)
    ctx.resource(7)  # type: ignore[call-overload]
    rota.lifespan(double.function)  # type: ignore[type-var]
    rota.lifespan(name=7)  # type: ignore[call-overload]


def queues() -> None:
    """Declaring a queue."""
    rota.queue("mail", retention={"discarded": 86_400, State.COMPLETED: 5}, concurrency=4)
    rota.queue("mail", retention=60, max_attempts=3, timeout=30)
    rota.queue("mail", retention="1d")  # type: ignore[arg-type]
    rota.queue("mail", attempts=3)  # type: ignore[call-arg]


def relays() -> None:
    """A relay is enqueued with the parts of a message, and gives no result."""
    orders = rota.relay("orders", to=RedisStream("redis://localhost"), batch=10)
    assert_type(orders.enqueue("4711", "Placed", {"total": 12}), JobHandle[None])
    orders.using(headers={"tenant": "acme"}).enqueue(aggregateid="1", type="Paid", payload=None)
    orders.enqueue("1", "Paid", None, conn=object())
    orders.enqueue(4711, "Placed", {})  # type: ignore[arg-type]
    rota.relay("orders", to="redis://localhost")  # type: ignore[arg-type]


def flows() -> None:
    """A list of nodes of several kinds can be waited for."""
    with rota.flow("orders") as f:
        charged = f.add(charge, 7)
        assert_type(charged.result, int)
        nodes = [charged, f.map(charge, [8, 9]), f.add(noted, "a")]
        f.add(charge, 10, after=nodes, on="finished")


@rota.task
def noted(note: str) -> None:
    """A task without a result."""
