"""Consistent jobs and sessions for the tests of the stores, made through the stores themselves."""

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic, sleep
from typing import Any, TypeVar

from rota.model.enqueued import Enqueued, Placed
from rota.model.job import (
    ClaimedJob,
    JobFilter,
    JobId,
    JobRecord,
    JobSpec,
    LeaseId,
    Order,
    Rescue,
    SessionId,
    SessionInfo,
)
from rota.model.settlement import Settlement
from rota.model.settlement import error_json as error_at
from rota.model.states import Move, State
from rota.store.connections import Connection, Transaction
from rota.store.execute import drive
from rota.store.operation import (
    Apart,
    Begin,
    Copy,
    Operation,
    Query,
    Request,
    Rows,
    Statement,
    Stepped,
    Steps,
    Surroundings,
    Where,
)
from rota.store.protocol import Store

T = TypeVar("T")

KEEP = 3600.0
NOBODY = JobId(987_654_321)
"""The id of no job."""

DUE = -3600.0
"""A delay that no caller can ask for: it leaves a job that waits for its staging, and is due."""

PAST = datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)


def error_json(attempt: int, exception: str, message: str, traceback: str = "") -> str:
    """An attempt that failed just now, as JSON text."""
    return error_at(attempt, exception, message, traceback, now=datetime.now(UTC))


def until(found: Callable[[], T | None], seconds: float = 20.0) -> T:
    """Ask again and again, until there is an answer."""
    deadline = monotonic() + seconds
    while (answer := found()) is None:
        assert monotonic() < deadline, "waited in vain"
        # What is waited for needs the processor, too.
        sleep(0.002)
    return answer


def spec_of(**options: Any) -> JobSpec:
    """A spec; tests name what matters to them."""
    return JobSpec(**{"task": "shop.send", **options})


def enqueue(store: Store, connection: Connection, count: int = 1, **options: Any) -> list[JobId]:
    """Jobs whose args are their numbers."""
    args = [f'{{"number":{number}}}' for number in range(count)]
    return connection.run(store.enqueue(Order(spec_of(**options), args)))


def placing(store: Store, order: Order) -> Operation[list[Placed]]:
    """An enqueue that tells what became of each job."""

    def steps(enqueue: Operation[Enqueued]) -> Steps[list[Placed]]:
        return (yield from enqueue.steps).placed

    operation = store.enqueue(order)
    return Stepped(operation.name, steps(operation), operation.begin, operation.then)


def open_session(store: Store, connection: Connection, *, timeout: float = 600.0) -> SessionId:
    """A worker's session; it lives through the test unless the timeout is short."""
    info = SessionInfo(host="alpha", pid=4711, queues=("default",), timeout=timeout)
    return connection.run(store.open_session(info))


def claim(
    store: Store,
    connection: Connection,
    session: SessionId,
    limit: int = 100,
    queues: tuple[str, ...] = ("default",),
) -> list[ClaimedJob]:
    """What a worker gets that asks for it."""
    return connection.run(store.claim(session, queues, limit))


def running(
    store: Store, connection: Connection, count: int = 1, **options: Any
) -> tuple[SessionId, list[ClaimedJob]]:
    """Jobs in the hands of a worker."""
    session = open_session(store, connection)
    ids = enqueue(store, connection, count, **options)
    jobs = claim(store, connection, session, count, (options.get("queue", "default"),))
    assert [job.id for job in jobs] == ids
    return session, jobs


def settlement(
    job: ClaimedJob, move: Move, *, delay: float = 0.0, keep: float | None = None, **rest: Any
) -> Settlement:
    """A settlement of a move; failures carry an error, and discarded jobs stay for ever."""
    if keep is None and move is not Move.DISCARD:
        keep = KEEP
    if move in {Move.RETRY, Move.DISCARD}:
        rest.setdefault("error", error_json(job.attempt, "ValueError", f"no luck {job.attempt}"))
    rest.setdefault("unique_key", job.unique_key)
    return Settlement(job.id, job.lease, move, delay, keep, **rest)


def settle(
    store: Store, connection: Connection, session: SessionId, *settlements: Settlement
) -> list[JobId]:
    """The ids that were refused."""
    return connection.run(store.settle(session, settlements))


def record(store: Store, connection: Connection, job: JobId) -> JobRecord:
    """The job as the store knows it."""
    [found] = connection.run(store.get([job]))
    return found


def retry_discarded(
    store: Store, connection: Connection, queue: str | None = None, task: str | None = None
) -> list[JobId]:
    """Make the discarded jobs available (of a queue, of a task), those with small ids first."""
    wanted = JobFilter(State.DISCARDED, queue, task, limit=10_000)
    found = [job.id for job in reversed(connection.run(store.list_jobs(wanted)))]
    return connection.run(store.retry(found, only=State.DISCARDED))


def states(store: Store, connection: Connection, jobs: list[JobId]) -> list[State]:
    """The states of jobs that exist."""
    found = connection.run(store.get(jobs))
    assert [job.id for job in found] == jobs
    return [job.state for job in found]


def rescued(
    store: Store,
    connection: Connection,
    session: SessionId,
    keep: Mapping[str, float] | None = None,
) -> Rescue:
    """Rescue again and again, until this session is taken for dead."""

    def look() -> Rescue | None:
        found = connection.run(store.rescue(keep))
        return next((rescue for rescue in found if rescue.session == session), None)

    return until(look)


@dataclass(frozen=True)
class Built:
    """A job in some state, with the session and the lease it has or had."""

    id: JobId
    session: SessionId
    job: ClaimedJob


def in_state(
    store: Store, connection: Connection, state: State, *, timeout: float = 600.0, **options: Any
) -> Built:
    """A job in this state; one that waits is due already."""
    session = open_session(store, connection, timeout=timeout)
    if state is State.SCHEDULED:
        [job] = enqueue(store, connection, delay=DUE, **options)
        return Built(job, session, _never_claimed(job))
    [job] = enqueue(store, connection, **options)
    if state is State.AVAILABLE:
        return Built(job, session, _never_claimed(job))
    [claimed] = claim(store, connection, session)
    move = {
        State.RUNNING: None,
        State.RETRYABLE: Move.RETRY,
        State.COMPLETED: Move.COMPLETE,
        State.DISCARDED: Move.DISCARD,
        State.CANCELLED: Move.CANCEL,
    }[state]
    if move is not None:
        assert settle(store, connection, session, settlement(claimed, move)) == []
    assert states(store, connection, [job]) == [state]
    return Built(job, session, claimed)


def one_of_each(store: Store, connection: Connection) -> dict[State, JobId]:
    """A job in every state."""
    # The available one comes last, so that no claim for another one takes it.
    built = [state for state in State if state is not State.AVAILABLE]
    return {state: in_state(store, connection, state).id for state in [*built, State.AVAILABLE]}


def _never_claimed(job: JobId) -> ClaimedJob:
    """What a liar would claim to hold."""
    return ClaimedJob(job, LeaseId(1), "shop.send", "{}", "default", 0, 1, 5, None, 0.0)


def run_inside(store: Store, transaction: Transaction, operation: Operation[T]) -> T:
    """Run an operation on the driver's connection of an open transaction, as a caller's would."""
    driver: Any = transaction.connection

    def execute(request: Request) -> Rows:
        match request:
            case Query() if isinstance(driver, sqlite3.Connection):
                return driver.execute(request.statement.text, request.params).fetchall()
            case Query():
                cursor = driver.execute(request.statement.text, request.params)
                rows: Rows = cursor.fetchall() if cursor.description else []
                return rows
            case Apart():
                own = store.connect()
                try:
                    return [(own.run(request.operation),)]
                finally:
                    own.close()
            case Where():
                return [Surroundings(inside=True)]
            case Copy():
                raise AssertionError(request)

    return drive(operation.steps, execute)


def minutes_pass(store: Store, connection: Connection, minutes: int = 1) -> None:
    """Let the history be so many minutes older, as it will be then."""
    if store.name == "sqlite":
        # In two moves, so that no row comes to where another one still is.
        texts = [
            f"UPDATE rota_history SET minute = minute + {by}" for by in (10**8, -(10**8) - minutes)
        ]
    else:
        texts = [
            *(
                f"UPDATE rota.history SET minute = minute + interval '{by} minutes'"
                for by in (10**7, -(10**7) - minutes)
            ),
            f"""SELECT setval('rota.history_recorded', last_value - {minutes})
                FROM rota.history_recorded WHERE last_value > 0""",
        ]

    def steps() -> Steps[None]:
        for text in texts:
            yield Statement("minutes_pass", text)()

    connection.run(Stepped("minutes_pass", steps(), Begin.HASTY))


def close_to(moment: datetime | None, expected: datetime, seconds: float = 20.0) -> bool:
    """Whether a moment is the expected one, give or take a slow machine."""
    return moment is not None and abs(moment - expected) < timedelta(seconds=seconds)
