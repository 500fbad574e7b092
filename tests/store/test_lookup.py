"""Looking jobs up: by id, and by what they are."""

from dataclasses import replace

import pytest

from rota.model.job import JobFilter, JobId, JobRecord
from rota.model.states import State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import NOBODY, enqueue, in_state, record


def test_get_keeps_the_order_asked_for(store: Store, connection: Connection) -> None:
    """The answer follows the question, without the ids of no job."""
    one, two, three = enqueue(store, connection, 3)
    found = connection.run(store.get([three, NOBODY, one, two]))
    assert [job.id for job in found] == [three, one, two]
    assert connection.run(store.get([])) == []
    assert connection.run(store.get([NOBODY])) == []


@pytest.mark.parametrize("state", list(State))
def test_get_finds_jobs_in_every_state(store: Store, connection: Connection, state: State) -> None:
    """Times and worker are set exactly where the state has them."""
    found = record(store, connection, in_state(store, connection, state).id)
    assert found.state is state
    assert (found.scheduled_at is not None) == (state in {State.SCHEDULED, State.RETRYABLE})
    assert (found.finished_at is not None) == state.finished
    assert (found.worker is not None) == (state is State.RUNNING)
    assert found.attempt == (0 if state in {State.SCHEDULED, State.AVAILABLE} else 1)
    assert len(found.errors) == (1 if state in {State.RETRYABLE, State.DISCARDED} else 0)


def test_the_newest_come_first(store: Store, connection: Connection) -> None:
    """A listing begins with the last job and ends at its limit."""
    jobs = enqueue(store, connection, 5)
    found = connection.run(store.list_jobs(JobFilter(limit=3)))
    assert [job.id for job in found] == jobs[:1:-1]
    assert connection.run(store.list_jobs(JobFilter(limit=0))) == []
    assert len(connection.run(store.list_jobs(JobFilter()))) == 5


@pytest.mark.parametrize("state", list(State))
def test_list_by_state(store: Store, connection: Connection, state: State) -> None:
    """A listing of a state holds the jobs in it, as `get` shows them, newest first."""
    jobs: dict[State, list[JobId]] = {each: [] for each in State}
    for each in State:
        if each is not State.AVAILABLE:
            jobs[each] = [in_state(store, connection, each).id for _ in range(3)]
    jobs[State.AVAILABLE] = enqueue(store, connection, 3)
    found = connection.run(store.list_jobs(JobFilter(state=state)))
    assert [job.id for job in found] == jobs[state][::-1]
    assert found == connection.run(store.get(jobs[state][::-1]))
    found = connection.run(store.list_jobs(JobFilter(state=state, limit=2)))
    assert [job.id for job in found] == jobs[state][:0:-1]


@pytest.mark.parametrize("state", [None, State.AVAILABLE, State.SCHEDULED])
def test_list_by_queue_and_task(store: Store, connection: Connection, state: State | None) -> None:
    """Filters are met together."""
    jobs = {}
    delay = 60.0 if state is State.SCHEDULED else None
    for queue in ("mail", "images"):
        for task in ("send", "resize"):
            [jobs[queue, task]] = enqueue(store, connection, queue=queue, task=task, delay=delay)

    def listed(queue: str | None, task: str | None) -> list[int]:
        wanted = JobFilter(state=state, queue=queue, task=task)
        return [job.id for job in connection.run(store.list_jobs(wanted))]

    assert listed("mail", None) == [jobs["mail", "resize"], jobs["mail", "send"]]
    assert listed(None, "send") == [jobs["images", "send"], jobs["mail", "send"]]
    assert listed("images", "resize") == [jobs["images", "resize"]]
    assert listed("nobody's", None) == []
    assert listed("mail", "nobody's") == []
    assert listed("mail' OR 1=1 --", None) == []


@pytest.mark.parametrize("state", [None, *State])
def test_pages(store: Store, connection: Connection, state: State | None) -> None:
    """Page after page, each job comes once, in the order of one long list."""
    for each in State:
        if each is not State.AVAILABLE:
            for _ in range(3):
                in_state(store, connection, each)
    enqueue(store, connection, 3)
    whole = connection.run(store.list_jobs(JobFilter(state=state)))
    paged: list[JobRecord] = []
    while page := connection.run(
        store.list_jobs(JobFilter(state=state, limit=2, after=paged[-1].id if paged else None))
    ):
        paged += page
    assert paged == whole
    assert len(whole) == (21 if state is None else 3)


@pytest.mark.parametrize("state", [None, *State])
def test_counting(store: Store, connection: Connection, state: State | None) -> None:
    """It counts what a listing lists, and is not bounded by its limit."""
    for each in State:
        if each is not State.AVAILABLE:
            in_state(store, connection, each)
    enqueue(store, connection, 2)
    enqueue(store, connection, queue="mail", task="other")
    for queue in (None, "mail", "default"):
        for task in (None, "other", "shop.send"):
            wanted = JobFilter(state=state, queue=queue, task=task)
            listed = connection.run(store.list_jobs(wanted))
            assert connection.run(store.count_jobs(replace(wanted, limit=1))) == len(listed)


def test_get_many(store: Store, connection: Connection) -> None:
    """Thousands of jobs are found at once."""
    jobs = enqueue(store, connection, 3000)
    jobs.reverse()
    assert [job.id for job in connection.run(store.get(jobs))] == jobs
