"""Resources: what lifespans yield is given to handlers, wherever they run in the worker."""

import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from rota import (
    PROVIDED,
    ArgsError,
    BatchContext,
    ConfigError,
    Context,
    JobFailed,
    Rota,
    State,
)
from rota.events import WorkerStarted
from tests.fixtures.workers import drained, working

EXECUTORS = pytest.mark.parametrize("executor", ["loop", "thread"])


@dataclass
class Engine:
    """What a lifespan yields."""

    name: str = "primary"


@dataclass
class Client:
    """What needs the engine."""

    engine: Engine


def equip(app: Rota) -> None:
    """Register a lifespan, and one that needs its resource."""

    @app.lifespan
    async def engine() -> AsyncIterator[Engine]:
        yield Engine()

    @app.lifespan
    def client(engine: Engine = PROVIDED) -> Iterator[Client]:
        yield Client(engine)


def handler(executor: str, said: list[Any]) -> Any:
    """A handler that says what it is given."""

    async def on_loop(order: int, engine: Engine = PROVIDED, *, client: Client = PROVIDED) -> None:
        said.append((order, engine, client))

    def in_thread(order: int, engine: Engine = PROVIDED, *, client: Client = PROVIDED) -> None:
        said.append((order, engine, client))

    return on_loop if executor == "loop" else in_thread


@EXECUTORS
def test_handlers_are_given_resources(app: Rota, executor: str) -> None:
    """A handler is given what lifespans yield, and it is stored nowhere."""
    said: list[Any] = []
    equip(app)
    pay = app.task(name="pay")(handler(executor, said))
    handle = pay.enqueue(7)
    many = pay.enqueue_many([(8,), {"order": 9}])
    records = app.database.run(app.database.store.get([handle.id, *many]))
    assert [json.loads(record.args) for record in records] == [{"order": n} for n in (7, 8, 9)]
    drained(app, concurrency=1)
    assert [order for order, _, _ in said] == [7, 8, 9]
    [engine] = {id(engine) for _, engine, _ in said}
    assert {id(client.engine) for _, _, client in said} == {engine}


@EXECUTORS
def test_batches(app: Rota, executor: str) -> None:
    """A batch handler is given them, too, and its contexts know them."""
    said: list[Any] = []
    equip(app)

    async def on_loop(orders: list[int], ctx: BatchContext, engine: Engine = PROVIDED) -> None:
        said.append((orders, engine, ctx.resource(Engine), ctx.jobs[0].resource("client")))

    def in_thread(orders: list[int], ctx: BatchContext, engine: Engine = PROVIDED) -> None:
        said.append((orders, engine, ctx.resource(Engine), ctx.jobs[0].resource("client")))

    function: Any = on_loop if executor == "loop" else in_thread
    task = app.task(name="pay", batch=2, within=0)(function)
    task.enqueue_many([(1,), (2,)])
    drained(app)
    [(orders, engine, same, client)] = said
    assert orders == [1, 2]
    assert engine is same is client.engine


def test_the_context_knows_them(app: Rota) -> None:
    """`ctx.resource` gives them by type and by name, in handlers and in middleware."""
    seen: list[object] = []
    equip(app)

    @app.around_run
    async def watch(job: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        seen.append(job.resource(Client).engine)
        return await call_next()

    @app.task(name="pay")
    def pay(ctx: Context) -> None:
        seen.extend((ctx.resource(Engine), ctx.resource("engine")))

    pay.enqueue()
    drained(app)
    assert len(seen) == 3
    assert len(set(map(id, seen))) == 1


def test_what_the_context_does_not_know(app: Rota) -> None:
    """Asking the context for what there is not fails the attempt, and says what there is."""
    equip(app)

    @app.task(name="pay", max_attempts=1)
    def pay(ctx: Context) -> None:
        ctx.resource(threading.Thread)

    handle = pay.enqueue()
    why = r"ctx\.resource\(.*Thread.*\): no lifespan .* engine \(Engine\), client \(Client\)"
    with working(app), pytest.raises(JobFailed, match=why):
        handle.result(timeout=20)
    with pytest.raises(ConfigError, match="a direct call has no resources"):
        pay()


def test_a_missing_resource(app: Rota) -> None:
    """It ends the worker before it claims, and names task, parameter and what there is."""
    equip(app)

    @app.task(name="pay")
    def pay(order: int, thread: threading.Thread = PROVIDED) -> None: ...

    handle = pay.enqueue(7)
    why = (
        r"^task 'pay': parameter `thread: Thread`: no lifespan of the worker yields it; "
        r"there are: engine \(Engine\), client \(Client\); add one"
    )
    with (
        app.events.collect(WorkerStarted) as started,
        pytest.raises(ConfigError, match=why),
    ):
        drained(app)
    assert (started, handle.status) == ([], State.AVAILABLE)


def test_a_lifespan_before_its_resource(app: Rota) -> None:
    """A lifespan is given what earlier ones yield, not later ones; the error names it."""
    left: list[str] = []

    @app.lifespan
    def other() -> Iterator[int]:
        yield 1
        left.append("other")

    @app.lifespan
    def client(engine: Engine = PROVIDED) -> Iterator[Client]:
        yield Client(engine)

    @app.lifespan
    def engine() -> Iterator[Engine]:
        yield Engine()

    app.task(name="job")(lambda: None)
    with pytest.raises(
        ConfigError, match=r"^lifespan 'client': parameter `engine: Engine`: .* other \(int\)"
    ):
        drained(app)
    assert left == ["other"]


def test_a_task_that_is_declared_late(app: Rota) -> None:
    """A task that a running worker learns of is given its resources; a missing one fails its jobs."""
    said: list[Any] = []
    equip(app)
    app.task(name="first")(lambda: None)
    with working(app):
        late = app.task(name="late", max_attempts=1, store_result=True)(handler("thread", said))
        late.enqueue(1).result(timeout=20)

        @app.task(name="lacking", max_attempts=1)
        def lacking(thread: threading.Thread = PROVIDED) -> None: ...

        with pytest.raises(JobFailed, match="no lifespan of the worker yields it"):
            lacking.enqueue().result(timeout=20)
    assert len(said) == 1


# Enqueueing and calling --------------------------------------------------------------------------


def test_a_resource_is_no_arg(app: Rota) -> None:
    """Passing one to an enqueue is refused: by name, by position, among many, as an entry's arg."""
    pay = app.task(name="pay")(handler("loop", []))
    why = "`engine` is a resource, which the worker passes and no database stores; leave it out"
    with pytest.raises(ArgsError, match=why):
        pay.enqueue(7, engine=Engine())
    with pytest.raises(ArgsError, match=f"job 1 of enqueue_many: .*{why}"):
        pay.enqueue_many([{"order": 1}, {"order": 2, "engine": None}])
    with pytest.raises(ArgsError, match=r"at most 1 can be positional, 2 were given.*`engine`"):
        pay.enqueue(7, Engine())
    with pytest.raises(ArgsError, match=why):
        app.cron.add("entry", "@daily", pay, args={"order": 1, "engine": None})


def test_a_resource_makes_no_key(app: Rota) -> None:
    """A key may name args only."""
    with pytest.raises(
        ConfigError, match=r"'engine', which is not an argument .*\(its arguments: order"
    ):
        app.task(name="pay", unique="pay:{engine}")(handler("loop", []))


def test_behind_a_resource_args_have_names(app: Rota) -> None:
    """What type checkers would count as the resource's position is no other parameter's."""
    said: list[Any] = []
    equip(app)

    @app.task(name="pay")
    def pay(order: int, engine: Engine = PROVIDED, note: str = "-", **more: int) -> None:
        said.append((order, engine.name, note, more))

    pay.enqueue(1, note="a", extra=2)
    with pytest.raises(ArgsError, match="at most 1 can be positional"):
        pay.enqueue(1, "a")  # type: ignore[arg-type]
    drained(app)
    assert said == [(1, "primary", "a", {"extra": 2})]


def test_a_direct_call(app: Rota) -> None:
    """It needs its resources passed, by name or by position, and says so."""
    said: list[Any] = []
    engine = Engine()
    client = Client(engine)
    pay = app.task(name="pay")(handler("thread", said))
    pay(7, engine, client=client)
    pay(order=7, engine=engine, client=client)
    assert said == [(7, engine, client)] * 2
    with pytest.raises(ArgsError, match=r"`client` is a resource.*pass it yourself"):
        pay(7, engine)

    @app.task(name="with-context")
    def with_context(ctx: Context, order: int, engine: Engine = PROVIDED) -> int:
        return ctx.attempt + order + len(engine.name)

    assert with_context(1, engine) == 9
    with pytest.raises(ArgsError, match="`engine` is a resource"):
        with_context(1)

    @app.task(name="batch", batch=2)
    def batch(orders: list[int], engine: Engine = PROVIDED) -> int:
        return len(orders) + len(engine.name)

    assert batch([1, 2], engine=engine) == 9
    with pytest.raises(ArgsError, match="`engine` is a resource"):
        batch([1, 2])


def test_what_cannot_be_given(app: Rota) -> None:
    """A resource is passed by name, so it is no positional-only parameter, nor before `*args`."""
    with pytest.raises(ArgsError, match="`engine` of task 'a' is a resource, which is passed by"):

        @app.task(name="a")
        def a(engine: Engine = PROVIDED, /) -> None: ...

    with pytest.raises(
        ArgsError, match=r"the resource `engine` of task 'b' stands before `\*rest`"
    ):

        @app.task(name="b")
        def b(engine: Engine = PROVIDED, *rest: int) -> None: ...
