"""Acting on a selection of jobs, and on everything that matches."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
import pytest

from rota import Discard, Rota, State, Task
from rota.dashboard.access import Access, Right
from rota.dashboard.carrier import queue_for
from rota.dashboard.core import Core
from rota.dashboard.message import Request, Response
from rota.dashboard.pages.many import ACTIONS
from rota.model.job import JobId
from rota.store.health import SessionFacts
from rota.top.history import History
from rota.top.queues import QueueRow
from tests.dashboard.conftest import drain

OWN = {"sec-fetch-site": "same-origin"}
JSON = OWN | {"accept": "application/json"}

Post = Callable[..., Response]
Send = Task[[int], None, None]


@pytest.fixture
def post(core: Core) -> Post:
    """Asks for something to be done."""

    def post(
        path: str,
        form: Mapping[str, str],
        *,
        access: Access | None = None,
        headers: Mapping[str, str] = OWN,
    ) -> Response:
        access = access or Access.all(who="ada")
        return core.answer(Request("POST", path, access, {}, headers, form))

    return post


@pytest.fixture
def send(app: Rota) -> Send:
    """A task that takes a number; discards its job where that is 0."""

    @app.task(name="send")
    def send(number: int) -> None:
        if not number:
            raise Discard("no number")

    return send


def picked(*jobs: int) -> dict[str, str]:
    """The fields of selected jobs."""
    return {f"job-{job}": "yes" for job in jobs}


def done(response: Response) -> Any:
    """What a program is told."""
    assert response.status == HTTPStatus.OK, response.body
    return msgspec.json.decode(response.body)


# A selection ------------------------------------------------------------------------------------


def test_a_selection_is_retried(app: Rota, send: Send, post: Post) -> None:
    """At once, and the list is shown again, with what was done."""
    jobs = send.enqueue_many([(0,)] * 3)
    drain(app)
    response = post("/jobs/retry", picked(*jobs[:2], 99) | {"state": "discarded", "queue": ""})
    assert response.status == HTTPStatus.SEE_OTHER
    assert response.headers["location"] == (
        "../jobs?state=discarded&done=jobs-retry-selected&changed=2"
    )
    assert app.jobs.count(state="available") == 2
    [deed] = app.admin.audit()
    assert (deed.who, deed.action, deed.changed) == ("ada", "jobs-retry", 2)
    assert deed.what == {"jobs": f"{jobs[0]}, {jobs[1]}, 99"}


@pytest.mark.parametrize(("what", "state"), [("cancel", State.CANCELLED), ("delete", None)])
def test_a_selection_is_asked_about(
    app: Rota, send: Send, post: Post, what: str, state: State | None
) -> None:
    """What cannot be taken back is asked about first, with the same jobs in the form."""
    jobs = send.enqueue_many([(1,)] * 3)
    asked = post(f"/jobs/{what}", picked(*jobs[:2])).body.decode()
    assert f"{what.capitalize()} 2 jobs?" in asked
    for job in jobs[:2]:
        assert f'name="job-{job}" value="yes"' in asked
    assert app.jobs.count(state="available") == 3
    assert app.admin.audit() == []
    told = done(post(f"/jobs/{what}", picked(*jobs[:2]) | {"sure": "yes"}, headers=JSON))
    assert told == {"action": f"jobs-{what}", "of": f"{jobs[0]}, {jobs[1]}", "changed": 2}
    assert [job.state for job in app.jobs.get(jobs)] == [
        *([state] * 2 if state else []),
        State.AVAILABLE,
    ]


def test_what_has_ended_is_not_cancelled(app: Rota, send: Send, post: Post) -> None:
    """Of a selection those count that were changed."""
    ended = send.enqueue(0)
    drain(app)
    waiting = send.enqueue(1)
    form = picked(ended.id, waiting.id) | {"sure": "yes"}
    assert done(post("/jobs/cancel", form, headers=JSON))["changed"] == 1
    assert ended.status is State.DISCARDED
    assert app.admin.audit()[0].changed == 1


# Everything that matches ------------------------------------------------------------------------


def everything(**found_by: str) -> dict[str, str]:
    """The fields of a form about everything that matches."""
    return {"which": "all", **found_by}


def test_everything_is_asked_about(app: Rota, send: Send, post: Post) -> None:
    """With how many jobs that are; then a job does it, whose page is shown."""
    jobs = send.enqueue_many([(0,)] * 12)
    drain(app)
    form = everything(state="discarded", task="send")
    asked = post("/jobs/retry", form)
    assert "Retry 12 jobs?" in asked.body.decode()
    assert app.jobs.count() == 12
    sure = form | {"sure": "yes", "until": str(jobs[9])}
    response = post("/jobs/retry", sure)
    job = JobId(jobs[-1] + 1)
    assert response.headers["location"] == f"../jobs/{job}?done=jobs-retry-all"
    [deed] = app.admin.audit()
    assert (deed.who, deed.job, deed.changed) == ("ada", job, 0)
    assert deed.what == {"state": "discarded", "task": "send"}
    drain(app)
    assert app.admin.audit()[0].changed == 10
    assert app.jobs.get(job)[0].state is State.COMPLETED


def test_programs_are_asked_too(app: Rota, send: Send, post: Post) -> None:
    """They get the number and up to which job it holds, and say yes with both."""
    jobs = send.enqueue_many([(1,)] * 3)
    form = everything(queue="default")
    told = done(post("/jobs/delete", form, headers=JSON))
    assert told["jobs"] == 3
    assert told["exact"] is True
    assert told["until"] == str(jobs[-1])
    assert told["states"] == [state.value for state in State if state is not State.RUNNING]
    told = done(post("/jobs/delete", form | {"sure": "yes", "until": told["until"]}, headers=JSON))
    assert told == {"action": "jobs-delete", "of": {"queue": "default"}, "job": str(jobs[-1] + 1)}
    assert app.jobs.get(int(told["job"]))[0].task == "rota.bulk"


def test_nothing_matches(app: Rota, send: Send, post: Post) -> None:
    """Then there is nothing to be done, and no job is made."""
    send.enqueue(1)
    for form in (everything(task="none"), everything(queue="none"), everything(state="scheduled")):
        assert post("/jobs/cancel", form | {"sure": "yes"}).status == HTTPStatus.NOT_FOUND
    assert app.jobs.count() == 1
    assert app.admin.audit() == []


def test_a_group_of_discarded_jobs(
    app: Rota, send: Send, post: Post, page: Callable[..., str], data: Callable[..., Any]
) -> None:
    """The jobs of one cause, as the page of discarded jobs groups them."""

    @app.task(name="pay", max_attempts=1)
    def pay(number: int) -> None:
        raise (KeyError if number % 2 else ValueError)(number)

    pay.enqueue_many([(number,) for number in range(5)])
    send.enqueue(0)
    drain(app)
    groups = data("/discarded")["groups"]
    assert sorted(group["jobs"] for group in groups) == [1, 2, 3]
    [group] = [group for group in groups if group["jobs"] == 2]
    shown = page("/discarded")
    assert (
        f'name="cause" value="{group["cause"]}"'.replace("<", "&lt;").replace(">", "&gt;") in shown
    )
    form = everything(state="discarded", task="pay", cause=group["cause"])
    assert done(post("/jobs/delete", form, headers=JSON))["jobs"] == 2
    post("/jobs/delete", form | {"sure": "yes"})
    drain(app)
    assert sorted(group["jobs"] for group in data("/discarded")["groups"]) == [1, 3]


@pytest.mark.parametrize(
    "form",
    [
        {}, picked("x"), picked("-1"), picked("9" * 40), {"job-": "yes"}, picked(*range(1, 502)),  # type: ignore[arg-type]
        everything(), everything(queue=""), everything(state="asleep"), everything(queue="\0"),
        everything(task="a" * 999), everything(subject="\0"), everything(arg="x"), everything(arg="=" * 999),
        everything(queue="default", until="x"), everything(queue="default", until="9" * 40),
        everything(state="running"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("sure", [{}, {"sure": "yes"}])
def test_hostile_forms(
    app: Rota, send: Send, post: Post, form: Mapping[str, str], sure: Mapping[str, str]
) -> None:
    """A plain page says what is wrong, and nothing is done."""
    send.enqueue(1)
    response = post("/jobs/delete", {**form, **sure})
    assert response.status in {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND}, response.body
    assert app.jobs.count() == 1
    assert app.admin.audit() == []


def test_markup_in_a_filter(app: Rota, send: Send, post: Post) -> None:
    """It is shown and not obeyed, on the question and in the audit."""
    evil = "<script>alert(1)</script>"
    send.using(queue=evil).enqueue(1)
    asked = post("/jobs/cancel", everything(queue=evil)).body.decode()
    assert evil not in asked
    assert "&lt;script&gt;" in asked
    post("/jobs/cancel", everything(queue=evil) | {"sure": "yes"})
    assert app.admin.audit()[0].what == {"queue": evil}


def test_finding_by_args_needs_the_right(app: Rota, post: Post) -> None:
    """A number tells something of args, too; and no job is found by a secret."""
    pay = app.task(name="pay", redact=("token",))(lambda order, token: (order, token))
    pay.enqueue(7, "s3cr3t")
    for form in (everything(arg="order=7"), everything(subject="order:*")):
        response = post("/jobs/delete", form, access=Access.only("delete"))
        assert response.status == HTTPStatus.FORBIDDEN
    response = post("/jobs/delete", everything(arg="token=s3cr3t"))
    assert response.status == HTTPStatus.FORBIDDEN
    assert done(post("/jobs/delete", everything(arg="order=7"), headers=JSON))["jobs"] == 1


@pytest.mark.usefixtures("send")
def test_buttons_are_where_the_right_is(app: Rota, core: Core) -> None:
    """A list offers what its request may do to jobs of that state.

    It offers to act on everything only where it is filtered.
    """
    app.find_task("send").enqueue(1)

    def shown(right: Right, **query: str) -> str:
        return core.answer(Request("GET", "/jobs", Access.only(right), query)).body.decode()

    for action in ACTIONS:
        for right in Right:
            offered = f'formaction="./{action.path[1:]}"'
            assert (offered in shown(right)) == (right is action.right)
            text = shown(right, state="available")
            able = State.AVAILABLE in action.kind.able
            assert (offered in text) == (right is action.right and able)
            assert ("All that match" in text) == (right in {Right.CANCEL, Right.DELETE})
            assert "All that match" not in shown(right)


def test_scheduled_jobs_run_now(app: Rota, send: Send, page: Callable[..., str]) -> None:
    """That is what retrying means for them."""
    job = send.using(delay=60).enqueue(1)
    assert "<button>Run now</button>" in page(f"/jobs/{job.id}")
    assert "Run now …" in page("/jobs", state="scheduled")
    assert "Run now" not in page("/jobs", state="discarded")
    assert app.jobs.count(state="scheduled") == 1


# Where the job goes -----------------------------------------------------------------------------


def worker(*queues: str, silent: float = 0.0) -> SessionFacts:
    """A worker of these queues."""
    return SessionFacts(
        id=1,
        worker="host:1",
        queues=queues,
        timeout=30.0,
        silent=silent,
        leased=0,
        oldest_lease=None,
    )


@pytest.mark.parametrize(
    ("workers", "paused", "queue"),
    [
        ([], "", "mail"),
        ([], "mail", "a"),
        ([], "all", "rota"),
        ([worker("*")], "", "rota"),
        ([worker("b", "a")], "", "a"),
        ([worker("b", "a"), worker("mail")], "", "mail"),
        ([worker("b", "a"), worker("mail")], "mail", "a"),
        ([worker("b", "a"), worker("mail", silent=31.0)], "", "a"),
        ([worker("mail-*")], "", "mail"),
        ([worker("mail"), worker("ro*")], "", "rota"),
    ],
)
def test_a_queue_that_a_worker_serves(workers: list[SessionFacts], paused: str, queue: str) -> None:
    """Not a paused queue; that of the jobs, if possible.

    It is Rota's own for a worker of all queues, or if there is no other one.
    """
    minute = History().minute()
    rows = [
        QueueRow(name, paused in {name, "all"}, counts={}, rates=None, oldest=None, minute=minute)
        for name in ("mail", "a", "b")
    ]  # fmt: skip
    assert queue_for(workers, rows, "mail") == queue


def test_nobody_runs_it(app: Rota, send: Send, post: Post, data: Callable[..., Any]) -> None:
    """The page of the job says so, and how to start a worker."""
    send.enqueue(1)
    job = done(post("/jobs/cancel", everything(queue="default") | {"sure": "yes"}, headers=JSON))[
        "job"
    ]
    [why] = data(f"/jobs/{job}")["why"]
    assert why["subject"] == "no worker"
    assert why["advice"].endswith("--queue default")
    assert app.job(int(job)).status is State.AVAILABLE
