"""A program that uses Rota, as its authors would write it; it is only type-checked, never run.

A type checker must find an error in each line that ends with `# wrong`, and in no other.
"""

from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any, assert_type

from rota import (
    Again,
    Backoff,
    BatchContext,
    BatchTask,
    Context,
    Discard,
    EnqueueCall,
    Enqueued,
    JobHandle,
    JobId,
    JobRecord,
    Limit,
    Retry,
    Rota,
    State,
    Unique,
    Worker,
    WorkerConfig,
)
from rota.cron import due_times
from rota.errors import JobNotFinished, StoreUnavailable
from rota.events import JobDiscarded, JobFailed

rota = Rota("sqlite:///shop.db")
rota.queue("mail", concurrency=4, retention={"discarded": 86_400})
rota.queue("mail", concurrency="four")  # wrong


@rota.task
def total(prices: list[int]) -> int:
    return sum(prices)


@rota.task(
    queue="mail",
    timeout=30,
    retry=Backoff(attempts=3),
    unique=Unique(("order",), while_=("waiting",)),
    limit=Limit("locale:{locale}", running=2),
    store_result=True,
)
async def send_receipt(order: int, *, locale: str = "en") -> str | Retry:
    return Retry("later") if order < 0 else f"{order} {locale}"


@rota.task(executor="process")
def render(ctx: Context, path: str) -> Again | None:
    ctx.progress(0.5, "half")
    ctx.log(path)
    assert_type(ctx.attempt, int)
    return None


@rota.task(batch=100, within=0.5)
def index(words: list[str], ctx: BatchContext) -> list[Discard | None]:
    return [None for _ in ctx.jobs] if words else []


@rota.cron("0 9 * * MON-FRI", timezone="Europe/Rome")
@rota.task
def nightly() -> None: ...


rota.task(queue=7)  # wrong


def enqueueing() -> None:
    assert_type(total([1, 2]), int)
    assert_type(total.enqueue([1, 2]), JobHandle[int])
    assert_type(total.enqueue([1, 2]).result(timeout=5), int)
    assert_type(total.enqueue_many([([1],), ([2],)]), Enqueued)
    assert_type(render.enqueue("a.png"), JobHandle[Again | None])
    assert_type(nightly.enqueue(), JobHandle[None])
    total.enqueue(["1"])  # wrong
    total.enqueue()  # wrong
    render.enqueue(7)  # wrong
    total.using(priority="high")  # wrong


async def enqueueing_async(conn: object) -> None:
    handle = await send_receipt.using(conn=conn, delay=30).aenqueue(42, locale="it")
    assert_type(handle.id, JobId)
    assert_type(await handle, str | Retry)
    assert_type(await handle.await_(), JobRecord)  # wrong
    await send_receipt.aenqueue("42")  # wrong


def looking(handle: JobHandle[str]) -> State:
    try:
        assert_type(handle.result(), str)
    except (JobNotFinished, StoreUnavailable) as error:
        assert_type(error.args, tuple[Any, ...])
    assert_type(handle.wait(timeout=5), JobRecord)
    return handle.status


def batches() -> None:
    assert_type(index, BatchTask[str, list[Discard | None]])
    index.enqueue("a")
    index.enqueue(["a"])  # wrong


def entries() -> None:
    assert_type(rota.cron.run("nightly"), JobHandle[Any])
    rota.cron(7)  # wrong
    assert_type(due_times("@daily", "Europe/Rome", datetime.now(UTC)), Iterator[datetime])
    due_times("@daily")  # wrong


@rota.on(JobFailed)
def note(event: JobFailed) -> None:
    assert_type(event.exception, str)
    _ = event.colour  # wrong


def listening() -> None:
    with rota.events.collect(JobDiscarded) as seen:
        assert_type(seen, list[JobDiscarded])


@rota.around_run
async def measure(job: Context | BatchContext, call_next: Callable[[], Awaitable[Any]]) -> Any:
    return job.task, await call_next()


@rota.around_enqueue
def guard(call: EnqueueCall, call_next: Callable[[EnqueueCall], list[JobId]]) -> list[JobId]:
    return call_next(call.using(priority=1))


def main() -> None:
    Worker(rota, WorkerConfig(queues=("mail",), drain=True)).run()
    WorkerConfig(concurrency="many")  # wrong
