"""Batch tasks in a worker: what is gathered, and what one call says of each job."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rota import BatchContext, Discard, JobHandle, JobId, Retry, Rota, Snooze, State, Task
from rota.events import JobSettled, JobStarted, WorkerStarted, WorkerStopped
from rota.model.job import JobSpec, Order
from tests.fixtures.workers import WorkerProcess, drained, records, until, working
from tests.worker.chores import adopt, batch_file

LONG_WITHIN = 300.0
"""Seconds that no test waits for."""

EXECUTORS = pytest.mark.parametrize("executor", ["loop", "thread"])


@pytest.fixture
def go() -> Iterator[threading.Event]:
    """Set at the end of the test at the latest, so that no handler waits for ever."""
    event = threading.Event()
    yield event
    event.set()


def batch_task(
    app: Rota, say: Callable[[list[int], BatchContext], Any], executor: str = "loop", **options: Any
) -> Task[[int], Any, Any]:
    """A batch task of numbers that says what `say` says, on the loop or in a thread."""

    async def on_loop(numbers: list[int], ctx: BatchContext) -> Any:
        return say(numbers, ctx)

    def in_thread(numbers: list[int], ctx: BatchContext) -> Any:
        return say(numbers, ctx)

    given: dict[str, Any] = {
        "name": "batch",
        "batch": 100,
        "within": 0.05,
        "retry": lambda _a, _e: 0.0,
    } | options
    task: Task[[int], Any, Any] = app.task(**given)(on_loop if executor == "loop" else in_thread)
    return task


def handles(app: Rota, ids: list[JobId]) -> list[JobHandle[Any]]:
    """Handles on these jobs."""
    return [app.job(job) for job in ids]


# What is gathered --------------------------------------------------------------------------------


@EXECUTORS
@pytest.mark.parametrize("concurrency", [1, 32])
def test_one_call_for_many_jobs(app: Rota, executor: str, concurrency: int) -> None:
    """A thousand jobs are ten calls, whatever the concurrency, and in the order of enqueue."""
    calls: list[list[int]] = []
    # Longer than any test takes: only full batches are called.
    task = batch_task(app, lambda numbers, _: calls.append(numbers), executor, within=LONG_WITHIN)
    task.enqueue_many([(n,) for n in range(1000)])
    drained(app, concurrency=concurrency)
    assert [len(call) for call in calls] == [100] * 10
    assert sorted(n for call in calls for n in call) == list(range(1000))
    if concurrency == 1:
        assert [n for call in calls for n in call] == list(range(1000))
    assert len(records(app, State.COMPLETED)) == 1000


def test_what_is_there_after_a_while(app: Rota) -> None:
    """A batch that does not become full is called `within` seconds after its first job."""
    calls: list[list[int]] = []
    task = batch_task(app, lambda numbers, _: calls.append(numbers), within=0.05)
    task.enqueue_many([(n,) for n in range(7)])
    drained(app)
    assert calls == [list(range(7))]


def test_jobs_that_come_later_join(app: Rota) -> None:
    """Jobs that are enqueued while a batch is gathered are part of it."""
    calls: list[list[int]] = []
    task = batch_task(app, lambda numbers, _: calls.append(numbers), batch=5, within=LONG_WITHIN)
    with working(app, concurrency=1):
        for number in range(5):
            handle = task.enqueue(number)
            if number < 4:
                until(lambda: handle.status is State.RUNNING)  # noqa: B023 - called at once
        handle.result(timeout=20)
    assert calls == [[0, 1, 2, 3, 4]]


def test_only_jobs_of_one_task(app: Rota) -> None:
    """Batches hold jobs of one task, of all its queues and priorities; other jobs go on."""
    calls: list[tuple[str, list[int]]] = []
    alone: list[int] = []

    @app.task(name="one", batch=4, within=LONG_WITHIN)
    async def one(numbers: list[int]) -> None:
        calls.append(("one", numbers))

    @app.task(name="two", batch=2, within=LONG_WITHIN)
    async def two(numbers: list[int]) -> None:
        calls.append(("two", numbers))

    @app.task(name="plain")
    async def plain(number: int) -> None:
        alone.append(number)

    for number in range(2):
        one.enqueue(number)
        two.enqueue(10 + number)
        plain.enqueue(20 + number)
        one.using(priority=5, queue="other").enqueue(2 + number)
    drained(app, queues=("default", "other"), concurrency=1)
    assert sorted((name, sorted(numbers)) for name, numbers in calls) == [
        ("one", [0, 1, 2, 3]), ("two", [10, 11]),
    ]  # fmt: skip
    assert alone == [20, 21]


def test_batches_and_other_jobs_take_turns(app: Rota) -> None:
    """Neither a flood of plain jobs keeps batches from running, nor the other way round."""
    order: list[str] = []

    @app.task(name="many", batch=10, within=0.001)
    async def many(numbers: list[int]) -> None:
        del numbers
        order.append("many")

    @app.task(name="plain")
    async def plain() -> None:
        order.append("plain")

    for _ in range(20):
        plain.enqueue_many([()] * 20)
        many.enqueue_many([(n,) for n in range(10)])
    drained(app, concurrency=1)
    assert order.count("plain") == 400
    # Not all of one kind before the first of the other.
    assert order.index("many") < 350
    assert order.index("plain") < 350


@EXECUTORS
def test_a_batch_is_one_running_call(app: Rota, executor: str) -> None:
    """No more calls run at once than the concurrency says."""
    now, most = 0, 0
    lock = threading.Lock()
    tick = threading.Event()

    def say(_: list[int], __: BatchContext) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        tick.wait(0.01)
        with lock:
            now -= 1

    task = batch_task(app, say, executor, batch=10)
    task.enqueue_many([(n,) for n in range(300)])
    drained(app, concurrency=2)
    assert most == (1 if executor == "loop" else 2)


def test_a_worker_with_slow_batches_hoards_few(app: Rota, go: threading.Event) -> None:
    """A worker that is busy with calls holds what they serve, and one more batch at most."""
    calls: list[int] = []

    def say(numbers: list[int], _: BatchContext) -> None:
        calls.append(len(numbers))
        assert go.wait(20)

    task = batch_task(app, say, "thread", batch=10, within=0.01)
    task.enqueue_many([(n,) for n in range(500)])
    with working(app, concurrency=2):
        until(lambda: len(calls) == 2)
        held = [len(records(app, State.RUNNING)) for _ in range(10)]
        assert max(held) <= 30
        go.set()
        until(lambda: not records(app, State.AVAILABLE) and not records(app, State.RUNNING))
    assert sum(calls) == 500


# What one call says ------------------------------------------------------------------------------


@EXECUTORS
def test_each_job_has_an_outcome_of_its_own(app: Rota, executor: str) -> None:
    """Values, None, outcomes and exceptions in the list: each settles its job and no other."""

    def say(numbers: list[int], ctx: BatchContext) -> list[Any]:
        by_number = {
            0: "fine",
            1: None,
            2: Snooze(3600),
            3: Discard("no use"),
            4: Retry("later", after=3600),
            5: ValueError("broken"),
        }
        return [
            by_number[n] if one.attempt == 1 else "at last"
            for n, one in zip(numbers, ctx.jobs, strict=True)
        ]

    task = batch_task(app, say, executor, store_result=True)
    with working(app):
        ids = task.enqueue_many([(n,) for n in range(6)])
        found = handles(app, ids)
        until(lambda: found[5].status is State.COMPLETED)
        rows = [handle.record() for handle in found]
    assert [(row.state, row.attempt, row.result) for row in rows] == [
        (State.COMPLETED, 1, '"fine"'),
        (State.COMPLETED, 1, None),
        (State.SCHEDULED, 0, None),
        (State.DISCARDED, 1, None),
        (State.RETRYABLE, 1, None),
        (State.COMPLETED, 2, '"at last"'),
    ]
    assert [row.errors[0].message for row in rows[3:]] == ["no use", "later", "broken"]
    assert rows[5].errors[0].exception == "builtins.ValueError"
    assert found[1].result(timeout=0) is None


@EXECUTORS
def test_an_exception_fails_all(app: Rota, executor: str) -> None:
    """A raised exception is a failed attempt of each job, each with its own count and policy."""
    calls: list[int] = []

    def say(numbers: list[int], _: BatchContext) -> None:
        calls.append(len(numbers))
        if len(calls) <= 2:
            raise LookupError("all of it")

    task = batch_task(app, say, executor, batch=3, within=0.2, max_attempts=2)
    first = handles(app, task.using(max_attempts=1).enqueue_many([(1,)]))
    other = handles(app, task.enqueue_many([(2,)])) + handles(
        app, task.using(max_attempts=9).enqueue_many([(3,)])
    )
    drained(app)
    rows = [handle.record() for handle in first + other]
    assert calls[0] == 3
    assert sum(calls) in {5, 6, 7}
    assert rows[0].state is State.DISCARDED
    assert {row.errors[0].exception for row in rows} == {"builtins.LookupError"}
    assert "say" in rows[0].errors[0].traceback
    assert rows[2].state is State.COMPLETED


@EXECUTORS
@pytest.mark.parametrize("how", ["raised", "returned"])
def test_an_outcome_for_all(app: Rota, executor: str, how: str) -> None:
    """An outcome that is raised, or returned instead of a list, applies to each job."""

    def say(_: list[int], __: BatchContext) -> Discard:
        if how == "raised":
            raise Discard("all the same")
        return Discard("all the same")

    task = batch_task(app, say, executor)
    ids = task.enqueue_many([(n,) for n in range(3)])
    drained(app)
    rows = [handle.record() for handle in handles(app, ids)]
    assert {(row.state, row.errors[0].message) for row in rows} == {
        (State.DISCARDED, "all the same")
    }


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([1, 2], "called with 3 elements and returned a list of 2"),
        ([], "returned a list of 0"),
        (7, "returned int"),
        ((1, 2, 3), "returned tuple"),
        ({"1": 1}, "returned dict"),
    ],
)
@pytest.mark.parametrize("store_result", [False, True])
def test_an_answer_that_says_nothing_of_each(
    app: Rota,
    answer: object,
    told: str,
    store_result: bool,  # noqa: FBT001 - parametrized
) -> None:
    """Anything but None and a list of the same length is a failed attempt of all of them."""
    task = batch_task(app, lambda _, __: answer, max_attempts=1, store_result=store_result)
    ids = task.enqueue_many([(n,) for n in range(3)])
    drained(app)
    rows = [handle.record() for handle in handles(app, ids)]
    assert {row.state for row in rows} == {State.DISCARDED}
    assert all(told in row.errors[0].message for row in rows)
    assert "must return None, or a list" in rows[0].errors[0].message


def test_a_result_that_cannot_be_stored(app: Rota) -> None:
    """It costs its own job alone; another run would not help."""
    task = batch_task(app, lambda _, __: [1, object(), 3], store_result=True)
    ids = task.enqueue_many([(n,) for n in range(3)])
    drained(app)
    rows = [handle.record() for handle in handles(app, ids)]
    assert [row.state for row in rows] == [State.COMPLETED, State.DISCARDED, State.COMPLETED]
    assert "cannot be stored" in rows[1].errors[0].message


@EXECUTORS
def test_args_that_cannot_be_read(app: Rota, executor: str) -> None:
    """A job with args of another version fails alone; the others are called without it."""
    calls: list[list[int]] = []
    ids: list[int] = []

    def say(numbers: list[int], ctx: BatchContext) -> list[int]:
        calls.append(numbers)
        ids.extend(one.job_id for one in ctx.jobs)
        return numbers

    task = batch_task(app, say, executor, store_result=True, max_attempts=1)
    good = task.enqueue_many([(1,), (2,)])
    bad = app.database.run(
        app.database.store.enqueue(
            Order(JobSpec("batch", max_attempts=1), ['{"numbers":"x"}', '{"other":1}'])
        )
    )
    more = task.enqueue_many([(3,)])
    drained(app)
    assert calls == [[1, 2, 3]]
    assert ids == good + more
    assert [handle.result(timeout=0) for handle in handles(app, good + more)] == [1, 2, 3]
    rows = [handle.record() for handle in handles(app, bad)]
    assert {(row.state, row.errors[0].exception) for row in rows} == {
        (State.DISCARDED, "rota.errors.ArgsError")
    }


def test_no_args_can_be_read(app: Rota) -> None:
    """Without a single element there is no call."""
    calls: list[int] = []
    batch_task(app, lambda numbers, _: calls.append(len(numbers)))
    bad = app.database.run(
        app.database.store.enqueue(Order(JobSpec("batch", max_attempts=1), ['{"numbers":"x"}'] * 2))
    )
    drained(app)
    assert calls == []
    assert {handle.status for handle in handles(app, bad)} == {State.DISCARDED}


def test_events_are_told_job_by_job(app: Rota) -> None:
    """Each job of a batch is started and settled for whoever listens."""
    started: list[int] = []
    settled: list[tuple[int, str]] = []
    app.on(JobStarted)(lambda event: started.append(event.job.id))
    app.on(JobSettled)(lambda event: settled.append((event.job.id, event.settlement.move.value)))
    task = batch_task(app, lambda _, __: [None, Discard("no")])
    ids = task.enqueue_many([(1,), (2,)])
    drained(app)
    assert started == ids
    assert settled == [(ids[0], "complete"), (ids[1], "discard")]


# What ends a call --------------------------------------------------------------------------------


def test_the_timeout_of_a_call(app: Rota) -> None:
    """The task's timeout is for the call; it is a failed attempt of each job."""

    @app.task(name="slow", batch=5, within=0.01, timeout=0.05, max_attempts=1)
    async def slow(numbers: list[int]) -> None:
        del numbers
        await asyncio.sleep(3600)

    ids = slow.enqueue_many([(n,) for n in range(3)])
    drained(app)
    rows = [handle.record() for handle in handles(app, ids)]
    assert {row.state for row in rows} == {State.DISCARDED}
    assert {row.errors[0].exception for row in rows} == {"builtins.TimeoutError"}


def test_the_timeout_in_a_thread(app: Rota) -> None:
    """A handler in a thread is told through its context."""

    @app.task(name="slow", batch=5, within=0.01, timeout=0.05, max_attempts=1)
    def slow(numbers: list[int], ctx: BatchContext) -> None:
        del numbers
        assert ctx.timeout == 0.05
        assert ctx.wait_cancelled(20)

    ids = slow.enqueue_many([(n,) for n in range(3)])
    drained(app)
    rows = [handle.record() for handle in handles(app, ids)]
    assert {(row.state, row.errors[0].exception) for row in rows} == {
        (State.DISCARDED, "builtins.TimeoutError")
    }


@pytest.mark.parametrize("how", ["looks", "does not look", "fails"])
def test_cancelling_one_job_of_a_call(app: Rota, how: str) -> None:
    """The call goes on; the job is cancelled if the handler lets it go or does not complete it."""
    began = threading.Event()
    go = threading.Event()

    def say(numbers: list[int], ctx: BatchContext) -> list[Any]:
        if ctx.jobs[0].attempt > 1:
            return [None] * len(numbers)
        began.set()
        if how == "looks":
            until(lambda: ctx.jobs[1].cancelled)
        assert go.wait(20)
        assert not ctx.cancelled
        if how == "fails":
            raise ValueError
        return [None, None, None]

    task = batch_task(app, say, "thread", batch=3)
    ids = task.enqueue_many([(n,) for n in range(3)])
    one, two, three = handles(app, ids)
    told = threading.Event()
    with working(app, session_timeout=1.0), pytest.MonkeyPatch.context() as patch:
        from rota.worker.batches import Batch

        made = Batch.cancel

        def spy(self: Batch, job: JobId) -> None:
            made(self, job)
            told.set()

        patch.setattr(Batch, "cancel", spy)
        assert began.wait(20)
        assert two.cancel() is State.RUNNING
        assert told.wait(20)
        go.set()
        for handle in (one, three):
            handle.result(timeout=20)
        until(lambda: two.status.finished)
    wanted = State.COMPLETED if how == "does not look" else State.CANCELLED
    assert [one.status, two.status, three.status] == [State.COMPLETED, wanted, State.COMPLETED]


def test_cancelling_a_job_that_is_gathered(app: Rota) -> None:
    """A job that waits for its batch is cancelled, and the others are called without it."""
    calls: list[list[int]] = []
    task = batch_task(app, lambda numbers, _: calls.append(numbers), batch=3, within=LONG_WITHIN)
    with working(app, session_timeout=1.0):
        one, two = handles(app, task.enqueue_many([(1,), (2,)]))
        until(lambda: two.status is State.RUNNING and one.status is State.RUNNING)
        with pytest.MonkeyPatch.context() as patch:
            from rota.worker.calls import Calls

            told = threading.Event()
            made = Calls.cancel

            def spy(self: Calls, job: JobId) -> bool:
                told.set()
                return made(self, job)

            patch.setattr(Calls, "cancel", spy)
            two.cancel()
            assert told.wait(20)
        three = task.enqueue(3)
        three.result(timeout=20)
        until(lambda: two.status.finished)
    assert calls == [[1, 3]]
    assert [one.status, two.status] == [State.COMPLETED, State.CANCELLED]


def test_stopping_while_a_batch_is_gathered(app: Rota) -> None:
    """What was not started is released, unspent, without waiting for the batch's time."""
    calls: list[int] = []
    task = batch_task(app, lambda numbers, _: calls.append(len(numbers)), within=LONG_WITHIN)
    ids = task.enqueue_many([(n,) for n in range(5)])
    stopped: list[int] = []
    app.on(WorkerStopped)(lambda event: stopped.append(event.released))
    with working(app) as worker:
        until(lambda: len(records(app, State.RUNNING)) == 5)
        worker.stop()
    assert stopped == [5]
    rows = [handle.record() for handle in handles(app, ids)]
    assert {(row.state, row.attempt) for row in rows} == {(State.AVAILABLE, 0)}
    assert calls == []


@EXECUTORS
def test_aborting_a_call(app: Rota, executor: str, go: threading.Event) -> None:
    """A second signal gives all jobs of the running call back."""
    began = threading.Event()

    @app.task(name="slow", batch=4, within=0.01)
    async def on_loop(numbers: list[int]) -> None:
        del numbers
        began.set()
        await asyncio.sleep(3600)

    @app.task(name="slow-thread", batch=4, within=0.01)
    def in_thread(numbers: list[int]) -> None:
        del numbers
        began.set()
        go.wait(20)

    task = on_loop if executor == "loop" else in_thread
    ids = task.enqueue_many([(n,) for n in range(4)])
    with working(app) as worker:
        assert began.wait(20)
        worker.abort()
    go.set()
    rows = [handle.record() for handle in handles(app, ids)]
    assert {(row.state, row.attempt) for row in rows} == {(State.AVAILABLE, 0)}


def test_a_lost_session(app: Rota) -> None:
    """A worker that lost its session stops the call and forgets what it gathered; all run again."""
    began = threading.Event()
    attempts: list[tuple[int, int]] = []

    @app.task(name="work", batch=2, within=LONG_WITHIN)
    async def work(numbers: list[int], ctx: BatchContext) -> None:
        attempts.extend((n, one.attempt) for n, one in zip(numbers, ctx.jobs, strict=True))
        if not began.is_set():
            began.set()
            await asyncio.sleep(3600)

    sessions: list[WorkerStarted] = []
    app.on(WorkerStarted)(sessions.append)
    ids = work.enqueue_many([(n,) for n in range(3)])
    with working(app, session_timeout=1.0):
        assert began.wait(20)
        until(lambda: len(records(app, State.RUNNING)) == 3)
        app.database.run(app.database.store.close_session(sessions[0].session))
        ids.append(work.enqueue(3).id)
        for handle in handles(app, ids):
            handle.result(timeout=20)
    assert [n for n, _ in attempts].count(2) == 1
    assert sorted({n for n, _ in attempts}) == [0, 1, 2, 3]


@pytest.mark.parametrize("when", ["gathering", "running"])
def test_a_killed_worker(app: Rota, tmp_path: Path, when: str) -> None:
    """All jobs that a killed worker had gathered or was running are rescued and run elsewhere."""
    count = 2 if when == "gathering" else 3
    task: Task[..., Any, Any] = adopt(app, batch_file, batch=3, within=0.05)
    with WorkerProcess(app.url, session_timeout=1.0) as worker:
        ids = task.enqueue_many([(f"{tmp_path}:{n}",) for n in range(count)])
        if when == "running":
            until(lambda: len(list(tmp_path.glob("started-*-1"))) == count)
        else:
            until(lambda: len(records(app, State.RUNNING)) == count)
        worker.process.kill()
        worker.ended()
        (tmp_path / "go").touch()
        with working(app):
            for handle in handles(app, ids):
                handle.result(timeout=20)
    rows = [handle.record() for handle in handles(app, ids)]
    assert {(row.state, row.attempt) for row in rows} == {(State.COMPLETED, 1)}
    assert {error.exception for row in rows for error in row.errors} == {"rota.WorkerDied"}
    assert len(list(tmp_path.glob("finished-*"))) == count


def test_sigterm_while_a_batch_is_gathered(app: Rota, tmp_path: Path) -> None:
    """`rota worker` ends at once on SIGTERM and releases what it has gathered."""
    task: Task[..., Any, Any] = adopt(app, batch_file, batch=3)
    with WorkerProcess(app.url) as worker:
        ids = task.enqueue_many([(f"{tmp_path}:{n}",) for n in range(2)])
        until(lambda: len(records(app, State.RUNNING)) == 2)
        worker.signal()
        assert worker.ended(10) == 0
    rows = [handle.record() for handle in handles(app, ids)]
    assert {(row.state, row.attempt) for row in rows} == {(State.AVAILABLE, 0)}


def test_under_an_old_snapshot(postgres_url: str) -> None:
    """Batches run, fail and are retried beside a transaction that keeps an old snapshot."""
    from rota.store.migrate import migrate

    with Rota(postgres_url) as app, psycopg.connect(postgres_url) as old:
        connection = app.database.store.connect()
        migrate(app.database.store, connection)
        connection.close()
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("SELECT count(*) FROM rota.job")

        def say(numbers: list[int], ctx: BatchContext) -> list[Any]:
            return [
                ValueError() if n % 2 and one.attempt == 1 else None
                for n, one in zip(numbers, ctx.jobs, strict=True)
            ]

        task = batch_task(app, say)
        ids = task.enqueue_many([(n,) for n in range(300)])
        drained(app)
        rows = app.database.run(app.database.store.get(ids))
        assert [row.attempt for row in rows] == [
            1 + json.loads(row.args)["numbers"] % 2 for row in rows
        ]
        assert {row.state for row in rows} == {State.COMPLETED}
        assert old.execute("SELECT count(*) FROM rota.job").fetchone() == (0,)
