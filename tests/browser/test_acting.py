"""From a filter to an action, as a person does it; with scripts and without."""

import pytest

from rota import Rota, State
from tests.browser.chromium import Chromium
from tests.browser.person import Person
from tests.fixtures.workers import until, working


@pytest.fixture(
    autouse=True,
    params=[pytest.param(True, marks=pytest.mark.large), False],
    ids=["scripts", "no-scripts"],
)
def with_scripts(request: pytest.FixtureRequest, browser: Chromium) -> None:
    """Each flow with scripts, then without."""
    browser.scripts(on=request.param)


def test_from_a_filter_to_one_job(person: Person, app: Rota) -> None:
    """Filter by an arg, open the job found, cancel it: a question comes first, a notice after."""
    send = app.task(name="send")(_nothing)
    jobs = [send.enqueue(number) for number in (7, 42)]
    person.goes_to("/jobs")
    person.fills_in(state="available", task="send", arg="number=42")
    assert person.sees() == [str(jobs[1].id)]
    person.follows(str(jobs[1].id))
    person.follows("Cancel …")
    assert jobs[1].status is State.AVAILABLE
    person.follows("No, back")
    person.follows("Cancel …")
    person.is_sure()
    assert person.is_told() == "The job was cancelled, or asked to stop."
    assert [job.status for job in jobs] == [State.AVAILABLE, State.CANCELLED]


def test_a_queue_is_paused_and_resumed(person: Person, app: Rota) -> None:
    """By a button, at once."""
    app.task(name="send", queue="mail")(_nothing).enqueue(1)
    person.goes_to("/queue", name="mail")
    person.follows("Pause")
    assert app.admin.queues()[0].paused
    person.follows("Resume")
    assert not app.admin.queues()[0].paused


def test_from_a_flow_to_its_job_and_back(person: Person, app: Rota) -> None:
    """Filter flows, open one, go to its job and back, cancel the flow after a question, retry it."""
    send = app.task(name="send")(_nothing)
    with app.flow("letters") as flow:
        first = flow.add(send, 1, name="first")
        flow.add(send, 2, name="second", after=[first])
    handle = flow.handle
    person.goes_to("/flows")
    person.fills_in(state="running", name="letters")
    person.follows(str(handle.id))
    person.follows("second")
    assert "It is the node second of flow" in person.browser.text("main")
    person.follows(f"{handle.id}, letters")
    person.follows("Cancel …")
    assert handle.record().state == "running"
    person.is_sure()
    assert person.is_told() == "The flow is cancelled; jobs that run are asked to stop."
    assert handle.record().state == "cancelled"
    person.follows("Retry what has failed")
    assert handle.record().state == "running"


def test_from_a_filter_to_all_that_match_and_to_the_audit(person: Person, app: Rota) -> None:
    """Filter, act on all that match: it is asked about first, carried out by a job, and written down."""
    send = app.task(name="send", queue="mail")(_nothing)
    jobs = [send.enqueue(number) for number in range(3)]
    person.goes_to("/jobs")
    person.fills_in(state="available", task="send")
    with working(app, queues=("rota",)):
        until(app.admin.workers, "the worker")
        person.follows("Cancel …")  # the first: of all that match
        assert "3 jobs" in person.browser.text("main")
        assert app.jobs.count(state="cancelled") == 0
        person.is_sure()
        assert person.is_told().startswith("This job does the work.")
        until(lambda: app.jobs.count(state="cancelled") == 3, "the jobs")
    person.goes_to("/audit")
    assert "jobs-cancel" in person.browser.text("main")
    assert [job.status for job in jobs] == [State.CANCELLED] * 3


def _nothing(number: int) -> None:
    del number
