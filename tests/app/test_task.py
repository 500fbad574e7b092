"""Declaring tasks and asking for jobs, before any worker comes into it."""

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from rota import (
    ArgsError,
    Backoff,
    ConfigError,
    Context,
    Discard,
    Executor,
    JobId,
    JobRecord,
    Rota,
    State,
    TaskAlreadyRegistered,
    TaskError,
    TaskNotFound,
)
from rota.model.job import JobFilter


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """A SQLite file: nothing here differs between the stores."""
    return f"sqlite:///{tmp_path}/rota.db"


def jobs(app: Rota) -> list[JobRecord]:
    """Every job that is stored."""
    return app.database.run(app.database.store.list_jobs(JobFilter(limit=1000)))


# Declaring ---------------------------------------------------------------------------------------


def _double(number: int) -> int:
    """Double it."""
    return 2 * number


def test_without_parentheses(app: Rota) -> None:
    """`@rota.task` makes a task named after its function."""
    double = app.task(_double)
    assert double.name == f"{__name__}._double"
    assert double(21) == 42
    assert double.__doc__ == "Double it."
    assert app.find_task(double.name) is double


def test_with_parentheses(app: Rota) -> None:
    """`@rota.task(...)` takes options, and the jobs have them."""

    @app.task(name="shop.double", queue="math", priority=3, timeout=timedelta(minutes=1),
              retry=Backoff(attempts=9))  # fmt: skip
    def double(number: int) -> int:
        return 2 * number

    record = double.enqueue(4).record()
    assert (record.task, record.queue, record.priority) == ("shop.double", "math", 3)
    assert (record.timeout, record.max_attempts) == (60.0, 9)
    assert record.args == '{"number":4}'


@pytest.mark.asyncio
async def test_an_async_task_is_called_directly(app: Rota) -> None:
    """Calling a task of an `async def` gives its coroutine."""

    @app.task(name="double")
    async def double(number: int) -> int:
        return 2 * number

    assert await double(21) == 42


def test_the_signature_is_kept(app: Rota) -> None:
    """A task looks to tools like its function."""

    def send(order: int, /, *, locale: str = "en") -> str:
        return f"{order}{locale}"

    task = app.task(name="send")(send)
    assert inspect.signature(task) == inspect.signature(send)
    assert task.__wrapped__ is send  # type: ignore[attr-defined]  # of functools.update_wrapper
    assert repr(task) == f"<Task {task.name}>"


@pytest.mark.parametrize("name", ["", " ", " send", "send\n", "x" * 201])
def test_a_name_that_is_none(app: Rota, name: str) -> None:
    """A name that nobody could read or type again is refused where the task is declared."""
    with pytest.raises(ConfigError, match="task: must be a name of 1 to 200"):
        app.task(name=name)(_keep)
    assert not app.tasks


def test_duplicate_names(app: Rota) -> None:
    """Two tasks of one name are refused, and the first one stays."""

    @app.task(name="send")
    def first() -> None: ...

    with pytest.raises(TaskAlreadyRegistered, match=r"'send'.*name="):

        @app.task(name="send")
        def second() -> None: ...

    assert app.find_task("send") is first


def test_an_unknown_task(app: Rota) -> None:
    """Looking for a task that nobody declared says what may be missing."""
    with pytest.raises(TaskNotFound, match="import the module"):
        app.find_task("nowhere.nothing")


def test_executors(app: Rota) -> None:
    """Without a word an `async def` runs on the loop and a `def` in a thread."""

    async def on_loop() -> None: ...
    def in_thread() -> None: ...

    assert app.task(name="l")(on_loop).executor is Executor.LOOP
    assert app.task(name="t")(in_thread).executor is Executor.THREAD
    assert app.task(name="p", executor="process")(in_thread).executor is Executor.PROCESS


@pytest.mark.parametrize("executor", ["thread", "process", Executor.THREAD])
def test_an_executor_that_does_not_fit_async(app: Rota, executor: str) -> None:
    """An `async def` runs nowhere but on the loop."""

    async def handler() -> None: ...

    with pytest.raises(ConfigError, match="does not fit; an async def runs on the loop"):
        app.task(name="handler", executor=executor)(handler)
    assert app.tasks == {}


def test_an_executor_that_does_not_fit_def(app: Rota) -> None:
    """A `def` would block the loop."""

    def handler() -> None: ...

    with pytest.raises(ConfigError, match="does not fit; a def cannot run on the loop"):
        app.task(name="handler", executor="loop")(handler)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"executor": "moon"}, "one of loop, thread, process"),
        ({"queue": ""}, "queue"),
        ({"queue": "a\nb"}, "printable"),
        ({"name": "a" * 201}, "200"),
        ({"priority": 40_000}, "32767"),
        ({"priority": 1.5}, "whole number"),
        ({"timeout": 0}, "more than 0"),
        ({"timeout": -1}, "timeout"),
        ({"max_attempts": 0}, "attempts"),
        ({"retry": 3}, "a Backoff or a function"),
        ({"retention": float("nan")}, "retention"),
    ],
)
def test_options_that_cannot_be(app: Rota, options: dict[str, Any], message: str) -> None:
    """An option of a wrong kind or range is refused when the task is declared."""
    with pytest.raises(ConfigError, match=message):
        app.task(**options)(_nothing)
    assert app.tasks == {}


def test_results_that_are_not_stored_may_be_anything(app: Rota) -> None:
    """A task that stores no result may return what has no form in JSON."""

    class Response: ...

    def fetch() -> Response:
        return Response()

    assert isinstance(app.task(name="fetch")(fetch)(), Response)
    with pytest.raises(ArgsError, match="Response"):
        app.task(store_result=True, name="stored")(fetch)


def _yields() -> Iterator[int]:
    yield 1


async def _yields_too() -> AsyncIterator[int]:
    yield 1


class _Job:
    """Takes what a job could have; a call would only make one."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, number: int) -> None:
        """Be callable, but no function."""


@pytest.mark.parametrize("name", [None, "given"])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_yields, "_yields cannot be a task: it yields.* write a def that loops over it"),
        (_yields_too, "_yields_too cannot be a task: it yields"),
        (_Job, "_Job cannot be a task: it is a class.* write a def"),
        (_Job(1), "made of a function, not of _Job; write a def"),
        ("mail", "made of a function, not of str.*options by name"),
        (functools.partial(print, 1), "made of a function, not of partial"),
    ],
    ids=["generator", "async-generator", "class", "object", "text", "partial"],
)
def test_what_is_no_handler(app: Rota, function: Any, message: str, name: str | None) -> None:
    """What would complete without having run is refused where it is declared, whatever its name."""
    for decorate in (app.task(name=name), app.task(name=name, batch=5)):
        with pytest.raises(TaskError, match=message):
            decorate(function)
    assert app.tasks == {}


def test_a_task_of_a_task(app: Rota) -> None:
    """A decorator too many is refused; it would call an `async def` in a thread."""
    task = app.task(name="nothing")(_nothing)
    with pytest.raises(
        TaskError, match=r"_nothing cannot be a task: it is already a task.*\.function"
    ):
        app.task(name="other")(task)
    app.task(name="other")(task.function)
    assert {*app.tasks} == {"nothing", "other"}


def _inside() -> Callable[[], None]:
    def nobody_finds() -> None: ...

    return nobody_finds


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: None, "a lambda has no name"),
        (sorted, "is built in"),
        (_inside(), "is defined inside a function.* move it to the top level"),
    ],
    ids=["lambda", "builtin", "local"],
)
def test_what_has_no_name_of_its_own(app: Rota, function: Any, message: str) -> None:
    """What no worker could find by its own name needs another one."""
    with pytest.raises(TaskError, match=f"cannot be a task: .*{message}.*give it a name="):
        app.task(function)
    assert app.tasks == {}


def test_a_lambda_with_a_name(app: Rota) -> None:
    """A lambda that is given a name is a task as any other."""
    double = app.task(name="double")(lambda number: 2 * number)
    assert double(21) == 42
    assert double.enqueue(4).record().task == "double"


def test_a_parameter_called_conn(app: Rota) -> None:
    """`conn` is Rota's own keyword; a task cannot have a parameter of that name."""

    def connect(conn: str) -> None: ...

    with pytest.raises((ConfigError, ArgsError), match="conn"):
        app.task(name="connect")(connect)


# Options of one call -----------------------------------------------------------------------------


def test_using(app: Rota, send: Any) -> None:
    """`using` changes the options of its jobs and leaves the task alone."""
    other = send.using(queue="mail", priority=-5, max_attempts=2, timeout=7.5)
    record = other.enqueue(1).record()
    assert (record.queue, record.priority) == ("mail", -5)
    assert (record.max_attempts, record.timeout) == (2, 7.5)
    assert send.enqueue(1).record().queue == "default"
    assert app.find_task("send") is send


def test_using_after_using(send: Any) -> None:
    """A second `using` adds to the first one; of two times the later word holds."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    record = send.using(queue="mail", delay=5).using(priority=2, at=soon).enqueue(1).record()
    assert (record.queue, record.priority, record.state) == ("mail", 2, State.SCHEDULED)
    assert abs(record.scheduled_at - soon) < timedelta(seconds=1)


def test_using_an_unknown_option(app: Rota, send: Any) -> None:
    """An option that does not exist is named, with those that do."""
    with pytest.raises(
        ConfigError, match="unknown option colour, size; the options are at, conn, delay"
    ):
        send.using(size=1, colour="red")
    assert jobs(app) == []


@pytest.mark.parametrize(
    "options",
    [
        {"queue": 7}, {"queue": ""}, {"priority": "high"}, {"priority": True},
        {"delay": -1}, {"delay": float("inf")}, {"delay": "5"}, {"at": 1_700_000_000},
        {"max_attempts": 0}, {"max_attempts": 2.0}, {"timeout": 0}, {"timeout": "1"},
    ],
    ids=str,
)  # fmt: skip
def test_using_an_invalid_option(app: Rota, send: Any, options: dict[str, Any]) -> None:
    """An option of a wrong kind or range is refused by its name, before any job."""
    with pytest.raises(ConfigError, match=next(iter(options))):
        send.using(**options)
    assert jobs(app) == []


def test_a_naive_time(app: Rota, send: Any) -> None:
    """A datetime without a zone could mean several moments."""
    with pytest.raises(ConfigError, match="no time zone"):
        send.using(at=datetime(2030, 1, 1))  # noqa: DTZ001 - that is the point
    assert jobs(app) == []


def test_times_at_the_ends_of_the_calendar(app: Rota, send: Any) -> None:
    """The latest ones are refused; the earliest ones are past, and jobs that have them are shown."""
    with pytest.raises(ConfigError, match="at most a century"):
        send.using(at=datetime.max.replace(tzinfo=UTC))
    send.using(at=datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))).enqueue(1)
    [job] = jobs(app)
    assert (job.state, job.scheduled_at) == (State.AVAILABLE, None)


def test_delay_and_at(app: Rota, send: Any) -> None:
    """A delay and a time cannot be combined."""
    with pytest.raises(ConfigError, match="cannot be combined"):
        send.using(delay=1, at=datetime.now(UTC))
    assert jobs(app) == []


def test_no_delay(send: Any) -> None:
    """A delay of nothing makes the job available now."""
    assert send.using(delay=0).enqueue(1).status is State.AVAILABLE
    assert send.using(delay=timedelta(0)).enqueue(1).status is State.AVAILABLE


# Args --------------------------------------------------------------------------------------------

BAD: dict[str, Any] = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "nul": "a\0b",
    "surrogate": "\ud800",
    "wide": 2**64,
    "key": {1: "one"},
    "object": object(),
    "set": {1, 2},
    "deep": [{"deep": [float("nan")]}],
}


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_args_that_cannot_be_stored(app: Rota, value: Any) -> None:
    """What JSON or a database would change is refused, and nothing is stored."""
    task = app.task(name="keep")(_keep)
    with pytest.raises(ArgsError, match="'keep'"):
        task.enqueue(value)
    with pytest.raises(ArgsError, match="job 1 of enqueue_many"):
        task.enqueue_many([(1,), (value,)])
    assert jobs(app) == []


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (("4",), {}, "number"),
        ((1.5,), {}, "number"),
        ((True,), {}, "number"),
        ((None,), {}, "number"),
        ((), {}, "`number` is missing"),
        ((1, 2), {}, "2 were given"),
        ((1,), {"number": 2}, "twice"),
        ((1,), {"colour": 2}, "`colour` is not a parameter"),
        ((1,), {"queue": "mail"}, r"`queue` is not a parameter; .* using\(queue=…\)"),
    ],
)
def test_args_that_do_not_fit(
    app: Rota, send: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], message: str
) -> None:
    """Args that the function would not take, or that have a wrong type, are refused."""
    with pytest.raises(ArgsError, match=message):
        send.enqueue(*args, **kwargs)
    assert jobs(app) == []


@pytest.mark.asyncio
async def test_bad_args_in_async_code(app: Rota, send: Any) -> None:
    """The async methods refuse the same."""
    with pytest.raises(ArgsError, match="number"):
        await send.aenqueue("4")
    with pytest.raises(ArgsError, match="job 2 of enqueue_many"):
        await send.aenqueue_many([(1,), (2,), ("3",)])
    assert jobs(app) == []


def test_a_large_payload(app: Rota) -> None:
    """Args above the limit are refused with their size; those at the limit are taken."""
    task = app.task(name="keep")(_keep)
    room = 1_000_000 - len('{"value":""}')
    assert task.enqueue("x" * room).status is State.AVAILABLE
    with pytest.raises(ArgsError, match="1,000,001 bytes, the limit is 1,000,000"):
        task.enqueue("x" * (room + 1))
    with pytest.raises(ArgsError, match="bytes, the limit"):
        task.enqueue("ä" * (room // 2 + 1))
    assert len(jobs(app)) == 1


def test_a_limit_of_ones_own(store_url: str) -> None:
    """The limit can be set, and taken away."""
    with Rota(store_url, max_args_bytes=20) as small, Rota(store_url, max_args_bytes=None) as any_:
        with pytest.raises(ArgsError, match="the limit is 20"):
            small.task(name="keep")(_keep).enqueue("x" * 20)
        any_.task(name="keep")(_keep).enqueue("x" * 1_100_000)
        assert len(jobs(any_)) == 1


def test_the_context_is_no_arg(app: Rota) -> None:
    """A parameter annotated Context is neither stored nor accepted."""

    @app.task(name="handler")
    def handler(ctx: Context, number: int) -> None: ...

    report: Any = handler
    assert report.enqueue(number=4).record().args == '{"number":4}'
    assert report.enqueue(4).record().args == '{"number":4}'
    with pytest.raises(ArgsError, match="is the context, which Rota passes"):
        report.enqueue(number=4, ctx=None)
    assert len(jobs(app)) == 2


def test_outcomes_are_no_results(app: Rota) -> None:
    """A handler may be annotated to return an outcome beside its result."""

    @app.task(name="fetch", store_result=True)
    def fetch() -> str | Discard:
        return Discard("why")

    assert fetch.enqueue().status is State.AVAILABLE


# Many --------------------------------------------------------------------------------------------


def test_enqueue_many(app: Rota, send: Any) -> None:
    """Tuples, lists and dicts may be mixed; ids come in their order."""
    ids = send.enqueue_many([(1,), [2], {"number": 3}, (4,)])
    found = app.database.run(app.database.store.get(ids))
    assert [record.args for record in found] == [f'{{"number":{n}}}' for n in (1, 2, 3, 4)]


def test_enqueue_many_of_a_generator(app: Rota, send: Any) -> None:
    """Any iterable will do, and an empty one gives no jobs."""
    assert len(send.enqueue_many((n,) for n in range(3))) == 3
    assert send.enqueue_many([]) == []
    assert len(jobs(app)) == 3


def test_a_generator_that_fails(app: Rota, send: Any) -> None:
    """An error of the iterable itself comes through, and nothing is stored."""

    def numbers() -> Iterator[tuple[int]]:
        yield (1,)
        raise LookupError

    with pytest.raises(LookupError):
        send.enqueue_many(numbers())
    assert jobs(app) == []


@pytest.mark.parametrize("bad", ["text", 7, None, b"bytes", {1, 2}, ("x",), {"colour": 1}])
def test_a_bad_element(app: Rota, send: Any, bad: Any) -> None:
    """The message names the number of the element that does not fit; nothing is stored."""
    with pytest.raises(ArgsError, match="job 2 of enqueue_many"):
        send.enqueue_many([(1,), (2,), bad, (4,)])
    assert jobs(app) == []


def test_using_with_enqueue_many(app: Rota, send: Any) -> None:
    """The options hold for each of many jobs."""
    ids: list[JobId] = send.using(queue="mail", delay=60).enqueue_many([(1,), (2,)])
    found = app.database.run(app.database.store.get(ids))
    assert [(one.queue, one.state) for one in found] == [("mail", State.SCHEDULED)] * 2


def _nothing() -> None: ...


def _keep(value: Any) -> None:
    del value
