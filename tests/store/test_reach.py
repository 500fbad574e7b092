"""How far a listing looks, so that it reads a bounded number of jobs."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rota.model.job import Arg, JobFilter, JobId, JobRecord, Keys, Order
from rota.model.settlement import Settlement, error_json
from rota.model.states import Move, State
from rota.model.unique import Unique
from rota.store.connections import Connection
from rota.store.postgres import jobs as postgres_jobs
from rota.store.protocol import Store
from rota.store.sqlite import jobs as sqlite_jobs
from tests.store.factories import (
    claim,
    enqueue,
    in_state,
    open_session,
    settle,
    settlement,
    spec_of,
)

BY_ID = [state for state in State if state not in {State.RUNNING, State.SCHEDULED, State.RETRYABLE}]
"""States whose jobs are found by their ids on every store."""

MOVES: dict[State | None, Move] = {
    State.RETRYABLE: Move.RETRY,
    State.COMPLETED: Move.COMPLETE,
    State.DISCARDED: Move.DISCARD,
    State.CANCELLED: Move.CANCEL,
}


def pages(
    store: Store, connection: Connection, wanted: JobFilter, most: int
) -> tuple[list[JobRecord], int]:
    """All jobs of a filter, page after page as far as each reaches; and how many pages that took."""
    found: list[JobRecord] = []
    for number in range(1, 100):
        until, since, _ = connection.run(store.reach(wanted, most))
        page = replace(wanted, after=JobId(until + 1), since=since or JobId(1))
        found += connection.run(store.list_jobs(page))
        if since is None:
            return found, number
        wanted = replace(wanted, after=since)
    raise AssertionError(found)


@pytest.mark.parametrize("state", [None, *State])
def test_pages_have_each_job_once(
    store: Store, connection: Connection, state: State | None
) -> None:
    """However little one page looks at, all pages together have what one listing has."""
    for task in ("shop.send", "shop.pay"):
        for each in State:
            if each is not State.AVAILABLE:
                in_state(store, connection, each, task=task)
    for task in ("shop.pay", "shop.send"):
        enqueue(store, connection, 3, task=task)
        enqueue(store, connection, 3, task=task, priority=-1)
    for wanted in (JobFilter(state=state), JobFilter(state=state, task="shop.pay")):
        found, _ = pages(store, connection, wanted, most=3)
        assert [job.id for job in found] == [
            job.id for job in connection.run(store.list_jobs(wanted))
        ]


@pytest.mark.parametrize("state", [None, *BY_ID])
def test_a_page_looks_at_so_many(store: Store, connection: Connection, state: State | None) -> None:
    """The pages of a filter that finds nothing are as many as there are jobs to look at."""
    if state is None or state is State.AVAILABLE:
        enqueue(store, connection, 10)
    else:
        for _ in range(10):
            in_state(store, connection, state)
    found, number = pages(store, connection, JobFilter(state=state, task="none"), most=5)
    assert found == []
    # The page that reaches the last job knows that only where there are fewer than it may look at.
    assert number == 3


def test_no_more_than_there_are(store: Store, connection: Connection) -> None:
    """Where few jobs are, a listing looks at all of them."""
    enqueue(store, connection, 3)
    assert connection.run(store.reach(JobFilter(), 10)).since is None
    assert connection.run(store.reach(JobFilter(state=State.DISCARDED), 10)).since is None


@pytest.mark.parametrize("state", BY_ID)
def test_old_jobs_are_found_below_others(
    store: Store, connection: Connection, state: State
) -> None:
    """What a state has is found at once, however many newer jobs in other states there are."""
    old = in_state(store, connection, state)
    enqueue(store, connection, 20, delay=3600.0)
    found, number = pages(store, connection, JobFilter(state=state), most=10)
    assert [job.id for job in found] == [old.id]
    assert number == 1


def test_behind_many_that_were_claimed(store: Store, connection: Connection) -> None:
    """By page two come a quiet queue's available jobs, however many newer ones were claimed."""
    waiting = enqueue(store, connection, 3, queue="quiet")
    enqueue(store, connection, 60)
    session = open_session(store, connection)
    assert len(claim(store, connection, session, limit=60)) == 60
    wanted, found = JobFilter(state=State.AVAILABLE), []
    for _ in range(2):
        until, since, beyond = connection.run(store.reach(wanted, 10))
        page = replace(wanted, after=JobId(until + 1), since=since or JobId(1))
        found += connection.run(store.list_jobs(page))
        if since is None:
            break
        wanted = replace(wanted, after=beyond or since)
    assert [job.id for job in found] == waiting[::-1]


def test_a_listing_ends_with_since(store: Store, connection: Connection) -> None:
    """Jobs with lower ids are left out, in every state."""
    jobs = enqueue(store, connection, 5)
    for state in (None, State.AVAILABLE):
        found = connection.run(store.list_jobs(JobFilter(state=state, since=jobs[2])))
        assert [job.id for job in found] == jobs[:1:-1]
    waiting = enqueue(store, connection, 2, delay=3600.0)
    wanted = JobFilter(state=State.SCHEDULED, since=waiting[1])
    assert [job.id for job in connection.run(store.list_jobs(wanted))] == waiting[1:]


@pytest.mark.parametrize("state", [None, *State])
def test_a_value_at_a_path(store: Store, connection: Connection, state: State | None) -> None:
    """Jobs are found in every state by JSON text, numbers and words, by names and list indexes."""
    args = '{"number": 7, "user": {"name": "ada", "tags": ["x", "y"]}, "fine": true, "text": "7"}'
    order = Order(spec_of(), [args])
    if state in {None, State.AVAILABLE}:
        wanted = [*connection.run(store.enqueue(order))]
    elif state is State.SCHEDULED:
        wanted = [*connection.run(store.enqueue(Order(spec_of(delay=3600.0), [args])))]
    else:
        wanted = [*connection.run(store.enqueue(order))]
        session = open_session(store, connection)
        [job] = claim(store, connection, session)
        if (move := MOVES.get(state)) is not None:
            settle(store, connection, session, settlement(job, move))
    for path, value, found in (
        (("number",), "7", True),
        (("number",), "8", False),
        (("text",), "7", True),
        (("user", "name"), "ada", True),
        (("user", "tags", "1"), "y", True),
        (("user", "tags", "2"), "y", False),
        (("fine",), "true", True),
        (("fine",), "1", False),
        (("nothing", "there"), "", False),
    ):
        for since in (None, JobId(1)):
            listed = connection.run(
                store.list_jobs(JobFilter(state=state, arg=Arg(path, value), since=since))
            )
            assert [job.id for job in listed] == (wanted if found else []), (path, value)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """So many unique keys, and jobs that wait, are many."""
    for module in (postgres_jobs, sqlite_jobs):
        monkeypatch.setattr(module, "MANY_KEYS", 4)
    monkeypatch.setattr(sqlite_jobs, "MANY", 4)
    return 4


@pytest.mark.parametrize("state", [State.SCHEDULED, State.RETRYABLE])
def test_many_jobs_that_wait(store: Store, connection: Connection, few: int, state: State) -> None:
    """Where too many wait to look at each, a page looks at so many jobs, and pages have each once."""
    waiting = [in_state(store, connection, state).id for _ in range(few + 1)]
    enqueue(store, connection, 6)
    found, number = pages(store, connection, JobFilter(state=state), most=3)
    assert [job.id for job in found] == waiting[::-1]
    assert number > 1


@pytest.mark.parametrize("state", [None, State.SCHEDULED, State.AVAILABLE, State.RUNNING])
def test_many_unique_keys(
    store: Store, connection: Connection, few: int, state: State | None
) -> None:
    """Where too many keys begin as asked for, pages look at jobs by their ids, and miss none."""
    unique = Unique(key="site:{x}")

    def place(count: int, prefix: str, **options: Any) -> None:
        keys = Keys(unique=[f"{prefix}{n}" for n in range(count)])
        spec = replace(spec_of(**options), unique=unique)
        connection.run(store.enqueue(Order(spec, ["{}"] * count, keys)))

    place(few, "site:later", delay=3600.0)
    place(few, "site:now")
    place(2, "other:")
    session = open_session(store, connection)
    claim(store, connection, session, limit=2)
    enqueue(store, connection, 5)
    wanted = JobFilter(subject="site:*", state=state)
    found, number = pages(store, connection, wanted, most=3)
    whole = connection.run(store.list_jobs(wanted))
    assert [job.id for job in found] == [job.id for job in whole]
    assert {job.unique_key[:5] for job in whole if job.unique_key} == {"site:"}
    assert number > 1 or state is State.RUNNING
    single, number = pages(store, connection, replace(wanted, subject="site:later0"), most=3)
    assert len(single) == (state in {None, State.SCHEDULED})


def test_brief(store: Store, connection: Connection) -> None:
    """A brief listing leaves out what may be large, and has the end of the last error."""
    spec = spec_of(headers='{"trace":"1"}')
    connection.run(store.enqueue(Order(spec, ['{"number":1}'] * 2)))
    session = open_session(store, connection)
    done, failed = claim(store, connection, session)
    error = error_json(1, "shop.Failed", "m" * 5000, "first" + "t" * 5000, now=datetime.now(UTC))
    settle(
        store,
        connection,
        session,
        Settlement(done.id, done.lease, Move.COMPLETE, 0.0, 3600.0, '"result"'),
        Settlement(failed.id, failed.lease, Move.DISCARD, 0.0, None, None, error),
    )
    last, first = connection.run(store.list_jobs(JobFilter(brief=True)))
    assert (first.args, first.result, dict(first.headers), first.errors) == ("{}", None, {}, ())
    assert (last.args, dict(last.headers)) == ("{}", {})
    [told] = last.errors
    assert (told.attempt, told.exception) == (1, "shop.Failed")
    assert (told.message, told.traceback) == ("m" * 300, "t" * 2000)
    whole = connection.run(store.list_jobs(JobFilter()))
    assert [job.args for job in whole] == ['{"number":1}'] * 2
    assert whole[1].result == '"result"'
