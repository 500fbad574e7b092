"""Declaring batch tasks and asking for their jobs, before any worker comes into it."""

import dataclasses
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rota import (
    ArgsError,
    BatchContext,
    BatchTask,
    ConfigError,
    Context,
    Discard,
    JobRecord,
    Rota,
    RotaError,
)
from rota.model.job import JobFilter


@dataclasses.dataclass
class Doc:
    """What is indexed."""

    title: str
    words: int = 0


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """A SQLite file: nothing here differs between the stores."""
    return f"sqlite:///{tmp_path}/rota.db"


def jobs(app: Rota) -> list[JobRecord]:
    """Every job that is stored, in the order of its enqueue."""
    return app.database.run(app.database.store.list_jobs(JobFilter(limit=1000)))[::-1]


def test_each_job_has_one_element(app: Rota) -> None:
    """The stored args have the parameter's name and one element of the list."""

    @app.task(name="index", batch=100, within=timedelta(seconds=2))
    async def index(docs: list[Doc], ctx: BatchContext) -> None: ...

    assert isinstance(index, BatchTask)
    assert (index.batching.size, index.batching.within) == (100, 2.0)
    index.enqueue(Doc("one"))
    index.using(priority=3).enqueue_many([(Doc("two", 2),), {"docs": Doc("three")}])
    assert [(job.args, job.priority) for job in jobs(app)] == [
        ('{"docs":{"title":"one","words":0}}', 0),
        ('{"docs":{"title":"two","words":2}}', 3),
        ('{"docs":{"title":"three","words":0}}', 3),
    ]


@pytest.mark.asyncio
async def test_async_twin(app: Rota) -> None:
    """`aenqueue` takes one element too."""

    @app.task(name="index", batch=5)
    def index(words: list[str]) -> None: ...

    await index.aenqueue("a")
    await index.aenqueue_many([("b",)])
    assert [job.args for job in jobs(app)] == ['{"words":"a"}', '{"words":"b"}']


def test_elements_are_checked(app: Rota) -> None:
    """An arg that is no element of the list is refused where it is enqueued."""

    @app.task(name="declared", batch=5)
    def declared(numbers: list[int], ctx: BatchContext | None = None) -> None: ...

    index: Any = declared  # what type checkers refuse, too
    with pytest.raises(ArgsError, match="numbers"):
        index.enqueue("one")
    with pytest.raises(ArgsError, match="numbers"):
        index.enqueue([1, 2])
    with pytest.raises(ArgsError, match="at most 1"):
        index.enqueue(1, 2)
    with pytest.raises(ArgsError, match="`numbers` is missing"):
        index.enqueue()
    with pytest.raises(ArgsError, match="is the context"):
        index.enqueue(1, ctx=BatchContext("index", None, ()))
    with pytest.raises(ArgsError, match="job 1 of enqueue_many"):
        index.enqueue_many([(1,), ("two",)])
    assert jobs(app) == []


def test_a_rolled_back_transaction(app: Rota) -> None:
    """Jobs of a batch task exist with their transaction or not at all."""

    @app.task(name="index", batch=5)
    def index(numbers: list[int]) -> None: ...

    def failing() -> None:
        with app.transaction() as tx:
            index.using(conn=tx).enqueue_many([(1,), (2,)])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert jobs(app) == []


def test_direct_calls(app: Rota) -> None:
    """Calling the task calls the function, with a context of no jobs if it wants one."""
    seen: list[BatchContext] = []

    @app.task(name="lengths", batch=5)
    def lengths(ctx: BatchContext, words: list[str]) -> list[int]:
        seen.append(ctx)
        return [len(word) for word in words]

    @app.task(name="plain", batch=5)
    def plain(words: list[str]) -> int:
        return len(words)

    assert lengths(["a", "bcd"]) == [1, 3]
    assert [(one.job_id, one.attempt) for one in seen[0].jobs] == [(0, 1)] * 2
    assert (seen[0].task, seen[0].timeout, seen[0].cancelled) == (lengths.name, None, False)
    mine = BatchContext("mine", 1.0, ())
    assert lengths(["a"], ctx=mine) == [1]
    assert seen[1] is mine
    assert plain(["a"]) == 1


def handlers() -> list[Any]:
    """Functions that cannot be batch handlers."""

    def nothing() -> None: ...

    def two(docs: list[int], more: list[int]) -> None: ...

    def one(doc: int) -> None: ...

    def several(*docs: int) -> None: ...

    def placed(docs: list[int], /) -> None: ...

    def unsaid(docs) -> None: ...  # type: ignore[no-untyped-def]

    def sequence(docs: Sequence[int]) -> None: ...

    def wrong_context(docs: list[int], ctx: Context) -> None: ...

    return [nothing, two, one, several, placed, unsaid, sequence, wrong_context]


@pytest.mark.parametrize("handler", handlers(), ids=lambda handler: handler.__name__)
def test_handlers_that_do_not_fit(app: Rota, handler: Any) -> None:
    """A handler without exactly one list is refused, and told what is needed."""
    with pytest.raises(ArgsError, match=r"Context|one parameter annotated with a list"):
        app.task(name="index", batch=5)(handler)
    assert app.tasks == {}


def test_a_bare_list(app: Rota) -> None:
    """A list that says nothing of its elements takes whatever JSON can hold."""

    @app.task(name="index", batch=5)
    def index(docs: list) -> None: ...  # type: ignore[type-arg]

    index.enqueue({"a": [1, None]})
    assert [job.args for job in jobs(app)] == ['{"docs":{"a":[1,null]}}']


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"batch": 0}, "between 1 and 10000"),
        ({"batch": 10_001}, "between 1 and 10000"),
        ({"batch": True}, "between 1 and 10000"),
        ({"batch": 2.5}, "between 1 and 10000"),
        ({"batch": 5, "within": -1}, "within"),
        ({"batch": 5, "within": float("nan")}, "within"),
        ({"within": 1}, "needs batch="),
        ({"batch": 5, "executor": "process"}, "on the loop or in a thread"),
    ],
)
def test_options_that_cannot_be_used(app: Rota, options: dict[str, Any], told: str) -> None:
    """Each wrong option is refused when the task is declared."""

    def index(docs: list[int]) -> None: ...

    with pytest.raises(ConfigError, match=told):
        app.task(name="index", **options)(index)
    assert app.tasks == {}


def test_a_single_job_has_no_timeout(app: Rota) -> None:
    """The timeout is that of the call, hence of the task; `using` refuses one."""

    @app.task(name="index", batch=5, timeout=30)
    def index(docs: list[int]) -> None: ...

    with pytest.raises(ConfigError, match="one call serves many jobs"):
        index.using(timeout=5)
    index.using(queue="slow", max_attempts=2).enqueue(1)
    [job] = jobs(app)
    assert (job.queue, job.max_attempts, job.timeout) == ("slow", 2, 30.0)


def test_results_of_another_type(app: Rota) -> None:
    """The type of each job's result is that of the list's elements, without the outcomes."""

    @app.task(name="measure", batch=5, store_result=True)
    def measure(words: list[str]) -> list[int | Discard | ValueError] | None: ...

    assert measure.result_codec.encode(3) == "3"
    with pytest.raises(RotaError):
        measure.result_codec.encode("three")
