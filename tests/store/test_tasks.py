"""Jobs of tasks that not all workers know: each is passed on once, to those that know its task."""

import pytest

from rota import Limit, Unique
from rota.model.job import ClaimedJob, JobFilter, JobId, Keys, Order, SessionId, SessionInfo
from rota.model.settlement import completed, passed_on, released
from rota.model.states import State
from rota.store.connections import Connection
from rota.store.health import MOST_JOBS
from rota.store.protocol import Store
from tests.store.factories import enqueue, open_session, spec_of, until
from tests.store.test_wake import woken_by

OURS, THEIRS = "shop.ours", "shop.theirs"


def claim(
    store: Store, connection: Connection, session: SessionId, *tasks: str, limit: int = 100
) -> list[ClaimedJob]:
    """What a worker gets that knows these tasks."""
    return connection.run(store.claim(session, ["default"], limit, tasks=tasks))


def pass_on(
    store: Store, connection: Connection, session: SessionId, jobs: list[ClaimedJob]
) -> None:
    """Settle jobs as a worker does that does not know their tasks."""
    assert connection.run(store.settle(session, [passed_on(job) for job in jobs])) == []


def available(store: Store, connection: Connection, *tasks: str) -> bool:
    """Whether a worker that knows these tasks sees something to claim."""
    return connection.run(store.look(["default"], tasks=tasks)).available


def state(store: Store, connection: Connection, job: JobId) -> tuple[State, int]:
    """The state of a job and the attempts it has begun."""
    [record] = connection.run(store.get([job]))
    return record.state, record.attempt


@pytest.mark.parametrize("options", [{}, {"delay": -3600.0}])
def test_a_job_is_passed_on(
    store: Store, connection: Connection, options: dict[str, float]
) -> None:
    """It is available at once for workers that know its task, and for no others; no attempt is spent."""
    session = open_session(store, connection)
    jobs = enqueue(store, connection, 3, task=THEIRS, **options)
    connection.run(store.stage(10))
    met = claim(store, connection, session, OURS)
    assert [job.id for job in met] == jobs
    pass_on(store, connection, session, met)
    assert state(store, connection, jobs[0]) == (State.AVAILABLE, 0)
    assert not available(store, connection, OURS)
    assert claim(store, connection, session, OURS) == []
    assert available(store, connection, "other", THEIRS)
    again = claim(store, connection, session, "other", THEIRS)
    assert [(job.id, job.attempt) for job in again] == [(job, 1) for job in jobs]
    settled = connection.run(store.settle(session, [completed(job, 60) for job in again]))
    assert settled == []
    assert {state(store, connection, job)[0] for job in jobs} == {State.COMPLETED}


def test_what_was_passed_on_is_counted(store: Store, connection: Connection) -> None:
    """All are counted by queue and task, with the sessions that know the task.

    Jobs that are claimed again or cancelled are not counted.
    """
    session = open_session(store, connection)
    jobs = enqueue(store, connection, MOST_JOBS + 5, task=THEIRS)
    pass_on(
        store, connection, session, claim(store, connection, session, OURS, limit=2 * MOST_JOBS)
    )
    info = SessionInfo("elsewhere", 7, ("default",), 60.0, (THEIRS,))
    knowing = connection.run(store.open_session(info))
    [found] = connection.run(store.passed_on())
    assert (found.queue, found.task, found.jobs) == ("default", THEIRS, MOST_JOBS + 5)
    assert knowing in found.knowing
    claim(store, connection, knowing, THEIRS, limit=MOST_JOBS)
    connection.run(store.cancel(jobs[-2:]))
    assert [facts.jobs for facts in connection.run(store.passed_on())] == [3]


def test_workers_that_know_all_tasks(store: Store, connection: Connection) -> None:
    """A claim that does not say which tasks it knows gets all jobs."""
    session = open_session(store, connection)
    enqueue(store, connection, task=THEIRS)
    pass_on(store, connection, session, claim(store, connection, session, OURS))
    assert connection.run(store.look(["default"])).available
    assert len(connection.run(store.claim(session, ["default"], 10))) == 1


def test_only_what_was_met_is_passed_on(store: Store, connection: Connection) -> None:
    """Later jobs lie where all workers claim: a task that all know then needs no way of its own."""
    session = open_session(store, connection)
    enqueue(store, connection, task=THEIRS)
    pass_on(store, connection, session, claim(store, connection, session, OURS))
    [later] = enqueue(store, connection, task=THEIRS)
    assert [job.id for job in claim(store, connection, session, OURS)] == [later]


def test_tasks_do_not_wait_for_each_other(store: Store, connection: Connection) -> None:
    """A task that no worker knows keeps no other task's jobs waiting."""
    session = open_session(store, connection)
    first = enqueue(store, connection, 50, task=THEIRS)
    [second] = enqueue(store, connection, task="shop.third")
    met = claim(store, connection, session, OURS)
    assert [job.id for job in met] == [*first, second]
    pass_on(store, connection, session, met)
    [ours] = enqueue(store, connection, task=OURS)
    found = claim(store, connection, session, OURS, "shop.third", limit=2)
    assert {job.id for job in found} == {ours, second}


def test_a_job_that_comes_back(store: Store, connection: Connection) -> None:
    """A job that was passed on and is released by a worker that knows it stays with those that do."""
    session = open_session(store, connection)
    [job] = enqueue(store, connection, task=THEIRS)
    pass_on(store, connection, session, claim(store, connection, session, OURS))

    def staged() -> bool | None:
        connection.run(store.stage(10))
        return state(store, connection, job)[0] is State.AVAILABLE or None

    for delay in (0.0, 0.001):
        [met] = claim(store, connection, session, THEIRS)
        connection.run(store.settle(session, [released(met, delay)]))
        until(staged)
        assert claim(store, connection, session, OURS) == []
    assert [one.id for one in claim(store, connection, session, THEIRS)] == [job]


def test_passed_on_twice(store: Store, connection: Connection) -> None:
    """A worker that says so of a job that lies there already changes nothing."""
    session = open_session(store, connection)
    [job] = enqueue(store, connection, task=THEIRS)
    pass_on(store, connection, session, claim(store, connection, session, OURS))
    pass_on(store, connection, session, connection.run(store.claim(session, ["default"], 10)))
    assert claim(store, connection, session, OURS) == []
    assert [one.id for one in claim(store, connection, session, THEIRS)] == [job]


def test_counts(store: Store, connection: Connection) -> None:
    """Passing on changes no number."""
    session = open_session(store, connection)
    enqueue(store, connection, 4, task=THEIRS)
    met = claim(store, connection, session, OURS)
    pass_on(store, connection, session, met[:3])
    [queue] = connection.run(store.queues())
    assert queue.counts == {State.AVAILABLE: 3, State.RUNNING: 1}
    pass_on(store, connection, session, met[3:])
    claim(store, connection, session, THEIRS, limit=1)
    [queue] = connection.run(store.queues())
    assert queue.counts == {State.AVAILABLE: 3, State.RUNNING: 1}


def test_cancelled_while_it_is_passed_on(store: Store, connection: Connection) -> None:
    """A job with a request to cancel is cancelled instead; one that lies there can be cancelled."""
    session = open_session(store, connection)
    first, second = enqueue(store, connection, 2, task=THEIRS)
    met = claim(store, connection, session, OURS)
    connection.run(store.cancel([first]))
    pass_on(store, connection, session, met)
    assert state(store, connection, first)[0] is State.CANCELLED
    assert connection.run(store.cancel([second])) == {second: State.CANCELLED}
    assert connection.run(store.retry([first, second])) == [first, second]
    left = {one.id for one in claim(store, connection, session, THEIRS)}
    assert left == {first, second}


def test_cleared(store: Store, connection: Connection) -> None:
    """Clearing a queue and listing its jobs reach what was passed on."""
    session = open_session(store, connection)
    jobs = enqueue(store, connection, 3, task=THEIRS)
    pass_on(store, connection, session, claim(store, connection, session, OURS))
    listed = connection.run(store.list_jobs(JobFilter(state=State.AVAILABLE, task=THEIRS)))
    assert sorted(record.id for record in listed) == jobs
    last = connection.run(store.last_job())
    clear = store.clear("default", State.AVAILABLE, after=JobId(0), until=last, limit=10)
    assert connection.run(clear).deleted == 3
    [queue] = connection.run(store.queues())
    assert queue.counts == {}


def test_limits_hold(store: Store, connection: Connection) -> None:
    """Jobs with a limit that were passed on share its places with the others."""
    session = open_session(store, connection)
    for task in (THEIRS, OURS):
        spec = spec_of(task=task, limit=Limit("one", running=1))
        connection.run(store.enqueue(Order(spec, ["{}"] * 2, Keys(limit=["one"] * 2))))
    met = claim(store, connection, session, OURS)
    assert [job.task for job in met] == [THEIRS]
    pass_on(store, connection, session, met)
    running = claim(store, connection, session, THEIRS)
    assert len(running) == 1
    assert claim(store, connection, session, OURS, THEIRS) == []
    connection.run(store.settle(session, [completed(job, 60) for job in running]))
    done = 1
    while found := claim(store, connection, session, OURS, THEIRS):
        assert len(found) == 1
        connection.run(store.settle(session, [completed(job, 60) for job in found]))
        done += 1
    assert done == 4


def test_fair_shares_stay(store: Store, connection: Connection) -> None:
    """Jobs with fair keys that were passed on have the shares of their keys."""
    session = open_session(store, connection)
    keys = ["a"] * 20 + ["b"]
    order = Order(spec_of(task=THEIRS), ["{}"] * 21, Keys(fair=keys))
    jobs = connection.run(store.enqueue(order))
    pass_on(store, connection, session, claim(store, connection, session, OURS))
    found = claim(store, connection, session, THEIRS, limit=4)
    assert jobs[-1] in {job.id for job in found}


def test_unique_jobs(store: Store, connection: Connection) -> None:
    """A unique job that was passed on keeps its key, can be replaced, and frees the key at its end."""
    session = open_session(store, connection)
    unique = Unique(on_conflict="replace")
    order = Order(spec_of(task=THEIRS, unique=unique), ['{"a":1}'], Keys(unique=["k"]))
    [job] = connection.run(store.enqueue(order))
    pass_on(store, connection, session, claim(store, connection, session, OURS))
    assert connection.run(store.enqueue(order._replace(args=['{"a":2}']))) == [job]
    found = claim(store, connection, session, OURS, THEIRS)
    assert [(one.id, one.args) for one in found] == [(job, '{"a":2}')]
    connection.run(store.settle(session, [completed(one, 60) for one in found]))
    [queue] = connection.run(store.queues())
    assert queue.counts == {State.COMPLETED: 1}
    assert connection.run(store.enqueue(order)) != [job]


def test_priorities(store: Store, connection: Connection) -> None:
    """A job that was passed on keeps its priority."""
    session = open_session(store, connection)
    [late] = enqueue(store, connection, task=THEIRS, priority=5)
    pass_on(store, connection, session, claim(store, connection, session, OURS))
    [early] = enqueue(store, connection, task=THEIRS, priority=1)
    found = claim(store, connection, session, THEIRS, limit=1)
    found += claim(store, connection, session, THEIRS, limit=1)
    assert [job.id for job in found] == [early, late]


@pytest.mark.parametrize("task", [THEIRS, None])
def test_workers_are_woken(store: Store, connection: Connection, task: str | None) -> None:
    """A job that is passed on ends the sleep of a worker that may know its task."""
    session = open_session(store, connection)
    enqueue(store, connection, task=THEIRS)
    met = claim(store, connection, session, OURS)
    waker = store.waker(["default"], None if task is None else [task])
    assert woken_by(waker, lambda: pass_on(store, connection, session, met))
    waker.close()


# What doctor and top are told -------------------------------------------------------------------


def knowing(store: Store, connection: Connection, *tasks: str) -> SessionId:
    """The session of a worker that says which tasks it knows."""
    info = SessionInfo("alpha", 4711, ("default",), 600.0, tasks)
    return connection.run(store.open_session(info))


def test_a_worker_that_comes_to_know(store: Store, connection: Connection) -> None:
    """What a session says later of the tasks that it knows counts for those who look after jobs."""
    session = knowing(store, connection, OURS)
    enqueue(store, connection, 1, task=THEIRS)
    pass_on(store, connection, session, claim(store, connection, session, OURS))
    connection.run(store.know(session, [OURS, THEIRS]))
    [facts] = connection.run(store.health()).work.passed_on
    assert facts.knowing == (session,)
    connection.run(store.know(session, []))
    [facts] = connection.run(store.health()).work.passed_on
    assert facts.knowing == ()


def test_what_was_passed_on_is_told(store: Store, connection: Connection) -> None:
    """Which task, how many jobs, in which queue, since when, and which sessions know it."""
    session = knowing(store, connection, OURS)
    assert connection.run(store.health()).work.passed_on == ()
    enqueue(store, connection, 3, task=THEIRS)
    enqueue(store, connection, 2, task=THEIRS, priority=7)
    enqueue(store, connection, task="shop.third")
    enqueue(store, connection, 9, task=OURS)
    met = [job for job in claim(store, connection, session, OURS) if job.task != OURS]
    pass_on(store, connection, session, met)
    theirs, third = connection.run(store.health()).work.passed_on
    assert (theirs.queue, theirs.task, theirs.jobs) == ("default", THEIRS, 5)
    assert (third.task, third.jobs, third.knowing) == ("shop.third", 1, ())
    assert 0 <= theirs.oldest < 20
    knows = knowing(store, connection, "shop.other", THEIRS)
    silent = open_session(store, connection)
    theirs, third = connection.run(store.health()).work.passed_on
    assert theirs.knowing == (knows, silent)
    assert third.knowing == (silent,), "a worker of an older Rota may know any task"
    claim(store, connection, knows, THEIRS, "shop.third")
    assert connection.run(store.health()).work.passed_on == ()


def test_very_many_are_not_counted(store: Store, connection: Connection) -> None:
    """Telling reads no more than so many jobs of a task."""
    session = open_session(store, connection)
    enqueue(store, connection, MOST_JOBS + 5, task=THEIRS)
    pass_on(store, connection, session, claim(store, connection, session, OURS, limit=5000))
    [facts] = connection.run(store.health()).work.passed_on
    assert facts.jobs == MOST_JOBS


def test_lanes_of_tasks(store: Store, connection: Connection) -> None:
    """What was passed on is told apart from the other jobs of its queue and priority."""
    session = open_session(store, connection)
    enqueue(store, connection, task=THEIRS)
    pass_on(store, connection, session, claim(store, connection, session, OURS))
    enqueue(store, connection, task=OURS)
    lanes = [lane for lane in connection.run(store.lanes()) if lane.oldest is not None]
    assert [(lane.queue, lane.priority, lane.task) for lane in lanes] in (
        [("default", 0, None), ("default", 0, THEIRS)],
        [("default", 0, THEIRS), ("default", 0, None)],
    )
