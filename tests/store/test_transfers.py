"""Transfers: jobs leave a database and enter another one, each in one transaction.

All that is known of the jobs goes along.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from shutil import copyfile
from typing import TypeVar

import pytest

from rota import Limit, Unique
from rota.model.enqueued import Placing
from rota.model.job import JobFilter, JobId, JobRecord, Keys, Order
from rota.model.states import Move, State
from rota.model.transfer import MOVED, NEVER, QUEUE, TASK, JobOnItsWay, Transfer, read_transfer
from rota.store.connections import Connection
from rota.store.opening import open_store
from rota.store.operation import Begin, Operation, Query, Statement, Stepped, Steps
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    enqueue,
    in_state,
    open_session,
    placing,
    record,
    running,
    settle,
    settlement,
    spec_of,
    states,
)
from tests.store.keying import fair, keys_of, limited

T = TypeVar("T")

FAR = datetime(2090, 1, 1, tzinfo=UTC)
TOKENS = count()
WAITING = {State.SCHEDULED, State.AVAILABLE, State.RETRYABLE}


@pytest.fixture
def file(tmp_path: Path, migrated_sqlite: Path) -> Iterator[Store]:
    """Another database, a file."""
    path = tmp_path / "other.db"
    copyfile(migrated_sqlite, path)
    with closing(open_store(f"sqlite:///{path}")) as store:
        yield store


@pytest.fixture
def there(file: Store) -> Iterator[Connection]:
    """A connection of the other database."""
    with closing(file.connect()) as connection:
        yield connection


def take(store: Store, connection: Connection, jobs: list[JobId]) -> Transfer:
    """Take these jobs out; the transfer that was stored instead."""
    transfer = Transfer(f"token {next(TOKENS)}", "acme", "eu", "us")
    taken = connection.run(store.transfers.take(jobs, transfer, any_job))
    assert taken is not None
    job, whole = taken
    stored = record(store, connection, job)
    assert (stored.task, stored.queue, stored.state) == (TASK, QUEUE, State.SCHEDULED)
    assert stored.scheduled_at == NEVER
    assert read_transfer(stored.args) == whole
    return whole


def any_job(job: JobOnItsWay) -> bool:
    """All jobs belong to the key."""
    return bool(job.task)


def put(store: Store, connection: Connection, transfer: Transfer) -> list[JobId]:
    """Store a transfer's jobs, all of them new; their ids."""
    placed = connection.run(store.transfers.put(transfer))
    assert placed is not None
    assert {each.placing for each in placed} <= {Placing.CREATED}
    return [each.job for each in placed]


def alike(record: JobRecord) -> JobRecord:
    """A job without what changes on its way."""
    headers = {name: text for name, text in record.headers.items() if name != MOVED}
    # A job that waits for another attempt waits for its time, as others do.
    state = State.SCHEDULED if record.state is State.RETRYABLE else record.state
    return replace(record, id=JobId(0), headers=headers, state=state)


def counts(store: Store, connection: Connection) -> dict[tuple[str, State], int]:
    """How many jobs each queue has in each state, of those that have any."""
    return {
        (queue.name, state): jobs
        for queue in connection.run(store.queues())
        for state, jobs in queue.counts.items()
        if jobs
    }


def of_all_sorts(store: Store, connection: Connection) -> list[JobId]:
    """Jobs that wait, with all that a job can have."""
    session, [retried] = running(store, connection, max_attempts=7, timeout=12.5, priority=3)
    settle(store, connection, session, settlement(retried, Move.RETRY, delay=3600.0))
    session, [round_] = running(store, connection)
    settle(store, connection, session, settlement(round_, Move.AGAIN, delay=3600.0))
    # Each has a preset here that must not hold for what moves.
    later = enqueue(store, connection, 2, at=FAR, headers='{"trace":"7"}', queue="mail")
    return [retried.id, round_.id, *later, *enqueue(store, connection, 2, max_attempts=1)]


def test_a_moment_that_is_rounded(
    store: Store, connection: Connection, file: Store, there: Connection
) -> None:
    """A moment between two microseconds, as SQLite has them, is shown alike in both databases."""
    [job] = enqueue(file, there)
    set_back = Statement("set_back", "UPDATE rota_job SET enqueued_at = 1795000945.2706954")
    there.run(Stepped("set_back", one(set_back()), Begin.NOTHING))
    before = record(file, there, job)
    [new] = put(store, connection, take(file, there, [job]))
    assert record(store, connection, new).enqueued_at == before.enqueued_at


def one(query: Query) -> Steps[None]:
    """The steps of one statement."""
    yield query


@pytest.mark.parametrize("back", [False, True])
def test_all_that_is_known_travels(
    store: Store, connection: Connection, file: Store, there: Connection, *, back: bool
) -> None:
    """Attempts, errors, rounds, times, headers and counts are the same in the other database."""
    if back:
        store, connection, file, there = file, there, store, connection
    there.run(file.set_queue("default", {"max_attempts": 9, "timeout": 99.0}))
    jobs = of_all_sorts(store, connection)
    before = connection.run(store.get(jobs))
    counted = counts(store, connection)
    transfer = take(store, connection, jobs)
    assert connection.run(store.get(jobs)) == []
    assert counts(store, connection) == {(QUEUE, State.SCHEDULED): 1}
    new = put(file, there, transfer)
    after = there.run(file.get(new))
    assert [*map(alike, after)] == [*map(alike, before)]
    assert [job.headers[MOVED] for job in after] == [f"eu:{job}" for job in jobs]
    assert counts(file, there) == {
        ("default", State.SCHEDULED): 2,
        ("default", State.AVAILABLE): 2,
        ("mail", State.SCHEDULED): 2,
    }
    assert sum(counted.values()) == 6
    session = open_session(file, there)
    assert [job.id for job in claim(file, there, session)] == new[-2:]


def test_a_transfer_is_stored_once(store: Store, connection: Connection) -> None:
    """A second time it does nothing, even after the jobs' ends; another transfer is separate."""
    transfer = take(store, connection, enqueue(store, connection, 2))
    new = put(store, connection, transfer)
    assert connection.run(store.transfers.put(transfer)) is None
    connection.run(store.delete(new))
    connection.run(store.tidy())
    assert connection.run(store.transfers.put(transfer)) is None
    assert connection.run(store.get(new)) == []
    put(store, connection, take(store, connection, enqueue(store, connection, 1)))


def test_jobs_that_do_not_wait_stay(store: Store, connection: Connection) -> None:
    """Running and finished jobs are left alone, and without any others there is no transfer."""
    jobs = [in_state(store, connection, state).id for state in State if state not in WAITING]
    before = connection.run(store.get(jobs))
    transfer = Transfer("token", "acme", "eu", "us")
    assert connection.run(store.transfers.take(jobs, transfer, any_job)) is None
    assert connection.run(store.transfers.take([], transfer, any_job)) is None
    assert connection.run(store.get(jobs)) == before
    assert connection.run(store.list_jobs(JobFilter(task=TASK))) == []


def test_jobs_that_do_not_belong_stay(store: Store, connection: Connection) -> None:
    """What belongs to another key by now is left alone, wherever it waits."""
    jobs = [*enqueue(store, connection, 2), *enqueue(store, connection, 2, delay=3600.0)]
    before = connection.run(store.get(jobs))
    transfer = Transfer("token", "acme", "eu", "us")
    taking = store.transfers.take(jobs, transfer, lambda job: '"number":1' in job.args)
    taken = connection.run(taking)
    assert taken is not None
    assert [job.id for job in taken[1].jobs] == jobs[1::2]
    assert connection.run(store.get(jobs)) == before[::2]


def test_a_job_that_is_due(store: Store, connection: Connection) -> None:
    """A job whose time has come on its way is available in the other database."""
    job = in_state(store, connection, State.SCHEDULED).id
    [new] = put(store, connection, take(store, connection, [job]))
    assert states(store, connection, [new]) == [State.AVAILABLE]


def test_a_transfer_is_hidden_and_never_due(store: Store, connection: Connection) -> None:
    """Nobody is shown the args of its jobs, which may be secret, and no worker gets it."""
    take(store, connection, enqueue(store, connection, 1))
    [stored] = connection.run(store.list_jobs(JobFilter(task=TASK)))
    assert "number" in stored.args
    assert "number" not in repr(stored)
    assert connection.run(store.stage(10)).staged == 0
    session = open_session(store, connection)
    assert claim(store, connection, session, queues=("*",)) == []


# Cut off ------------------------------------------------------------------------------------------


class CutOffError(BaseException):
    """Stands for the end of a process."""


def cut_off(operation: Operation[T], after: int) -> Operation[T]:
    """The same operation, whose process ends after so many requests."""

    def steps() -> Steps[T]:
        inner = operation.steps
        try:
            request = next(inner)
            for _ in range(after):
                request = inner.send((yield request))
        except StopIteration as end:
            result: T = end.value
            return result
        raise CutOffError

    return Stepped(operation.name, steps(), operation.begin, operation.then)


def test_cut_off_while_jobs_leave(store: Store, connection: Connection) -> None:
    """Wherever it is cut off, all jobs are where they were, and there is no transfer."""
    jobs = [*of_all_sorts(store, connection), unique(store, connection)]
    before, counted = connection.run(store.get(jobs)), counts(store, connection)
    for last in count():
        taking = store.transfers.take(jobs, Transfer("token", "acme", "eu", "us"), any_job)
        try:
            taken = connection.run(cut_off(taking, last))
        except CutOffError:
            assert connection.run(store.get(jobs)) == before, last
            assert counts(store, connection) == counted, last
        else:
            break
    assert last > 4
    assert taken is not None
    assert len(taken[1].jobs) == len(jobs)
    assert counts(store, connection) == {(QUEUE, State.SCHEDULED): 1}


def test_cut_off_while_jobs_enter(store: Store, connection: Connection) -> None:
    """Wherever it is cut off, none of them is there, and the next try stores them all."""
    jobs = [*of_all_sorts(store, connection), unique(store, connection)]
    transfer = take(store, connection, jobs)
    counted = counts(store, connection)
    for last in count():
        try:
            placed = connection.run(cut_off(store.transfers.put(transfer), last))
        except CutOffError:
            assert counts(store, connection) == counted, last
        else:
            break
    assert last > 4
    assert placed is not None
    assert [each.placing for each in placed] == [Placing.CREATED] * len(jobs)


# Keys ---------------------------------------------------------------------------------------------

UNIQUE = Unique(key="{key}")
HOUR = timedelta(hours=1)


def unique(store: Store, connection: Connection, rule: Unique = UNIQUE, **options: object) -> JobId:
    """A job with the unique key `one`."""
    order = Order(spec_of(unique=rule, **options), ["{}"], Keys(unique=["one"]))
    [placed] = connection.run(placing(store, order))
    return placed.job


@pytest.mark.parametrize("rule", [UNIQUE, Unique(key="{key}", period=HOUR, while_=("waiting",))])
def test_a_unique_key_travels(
    store: Store, connection: Connection, file: Store, there: Connection, rule: Unique
) -> None:
    """It is free in the old database, where it has no period, and taken in the new one."""
    later = {"delay": 3600.0}
    job = unique(store, connection, rule, **later)
    key = record(store, connection, job).unique_key
    [new] = put(file, there, take(store, connection, [job]))
    assert record(file, there, new).unique_key == key
    assert unique(file, there, rule) == new
    assert (unique(store, connection, rule) == job) == (rule.period is not None)
    there.run(file.retry([new]))
    session = open_session(file, there)
    [claimed] = claim(file, there, session)
    assert claimed.id == new
    settle(file, there, session, settlement(claimed, Move.COMPLETE))
    assert (unique(file, there, rule) == new) == (rule.period is not None)


def test_a_unique_key_that_is_taken(
    store: Store, connection: Connection, file: Store, there: Connection
) -> None:
    """The job that has the key there keeps it and its args, and what moves joins it."""
    job, other = unique(store, connection), unique(file, there, priority=7)
    transfer = take(store, connection, [job, *enqueue(store, connection)])
    placed = there.run(file.transfers.put(transfer))
    assert placed is not None
    joined, created = placed
    assert (joined.job, joined.placing, created.placing) == (
        other,
        Placing.SKIPPED,
        Placing.CREATED,
    )
    found = record(file, there, other)
    assert (found.priority, found.headers) == (7, {})


def test_limits_and_fair_shares_travel(
    store: Store, connection: Connection, file: Store, there: Connection
) -> None:
    """Of a limit of one, one job is handed out there, and fair shares take turns."""
    jobs = limited(store, connection, ["a", "a", "a"], Limit(key="{key}", running=1, per_hour=5))
    put(file, there, take(store, connection, jobs))
    session = open_session(file, there)
    assert keys_of(claim(file, there, session)) == ["a"]
    [used] = there.run(file.limits(10))
    assert (used.key, used.running, used.rate, used.seconds) == ("a", 1, 5, 3600.0)
    jobs = fair(store, connection, ["a", "a", "a", "b"], queue="mail")
    put(file, there, take(store, connection, jobs))
    assert keys_of(claim(file, there, session, 2, ("mail",))) == ["a", "b"]


def test_health_knows_transfers(store: Store, connection: Connection) -> None:
    """How many wait to be finished, and the first of them; a job that is due as late is none."""
    looked = connection.run(store.health()).work
    assert looked.transfers is None
    enqueue(store, connection, 1, delay=(NEVER - datetime.now(UTC)).total_seconds() + 60.0)
    first, second = (enqueue(store, connection, 2) for _ in range(2))
    for jobs in (first, second):
        take(store, connection, jobs)
    found = connection.run(store.health()).work.transfers
    assert found is not None
    assert found.transfers == 2
    assert 0 <= found.oldest < 60
    assert record(store, connection, found.job).task == TASK
