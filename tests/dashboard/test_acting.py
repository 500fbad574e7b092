"""Acting on one job, one queue, one cron entry."""

from collections.abc import Callable, Mapping
from http import HTTPStatus

import msgspec
import pytest

from rota import Discard, Rota, State, Task
from rota.dashboard.access import Access, Right
from rota.dashboard.core import Core
from rota.dashboard.message import Request, Response
from rota.dashboard.pages.acting import ACTIONS, TOLD
from tests.dashboard.conftest import drain

OWN = {"sec-fetch-site": "same-origin"}

Post = Callable[..., Response]


@pytest.fixture
def post(core: Core) -> Post:
    """Asks for something to be done."""

    def post(
        path: str, *, access: Access | None = None, headers: Mapping[str, str] = OWN, **form: str
    ) -> Response:
        return core.answer(Request("POST", path, access or Access.all(), {}, headers, form))

    return post


@pytest.fixture
def send(app: Rota) -> Task[[int], None, None]:
    """A task that takes a number; discards its job where that is 0."""

    @app.task(name="send")
    def send(number: int) -> None:
        if not number:
            raise Discard("no number")

    return send


def test_retry(app: Rota, send: Task[[int], None, None], post: Post) -> None:
    """A discarded job is available again; then there is nothing to be done."""
    job = send.enqueue(0)
    drain(app)
    response = post(f"/jobs/{job.id}/retry")
    assert response.status == HTTPStatus.SEE_OTHER
    assert response.headers["location"] == f"../../jobs/{job.id}?done=jobs-retry"
    assert job.status is State.AVAILABLE
    assert post(f"/jobs/{job.id}/retry").headers["location"].endswith("done=jobs-retry-idle")


def test_cancel(app: Rota, send: Task[[int], None, None], post: Post) -> None:
    """It is asked about first; a job that has ended stays as it is."""
    job, ended = send.enqueue(1), send.enqueue(0)
    asked = post(f"/jobs/{job.id}/cancel")
    assert asked.status == HTTPStatus.OK
    assert b'name="sure"' in asked.body
    assert app.jobs.count(state="available") == 2
    assert post(f"/jobs/{job.id}/cancel", sure="yes").headers["location"].endswith("jobs-cancel")
    assert app.jobs.count(state="cancelled") == 1
    drain(app)
    found = post(f"/jobs/{ended.id}/cancel", sure="yes").headers["location"]
    assert found.endswith("jobs-cancel-idle")
    assert ended.status is State.DISCARDED


def test_delete(app: Rota, send: Task[[int], None, None], post: Post) -> None:
    """It is asked about first; afterwards the list of jobs is shown."""
    job = send.enqueue(1)
    assert b"cannot be undone" in post(f"/jobs/{job.id}/delete").body
    assert app.jobs.get(job)
    assert (
        post(f"/jobs/{job.id}/delete", sure="yes").headers["location"]
        == "../../jobs?done=jobs-delete"
    )
    assert app.jobs.get(job) == []
    assert (
        post(f"/jobs/{job.id}/delete", sure="yes").headers["location"].endswith("jobs-delete-idle")
    )


def test_queues(app: Rota, send: Task[[int], None, None], post: Post) -> None:
    """Paused and resumed, by their names."""
    send.using(queue="a/b & c").enqueue(1)
    for what, paused in (("pause", True), ("resume", False)):
        response = post(f"/queue/{what}", name="a/b & c")
        assert response.headers["location"] == f"../queue?name=a%2Fb+%26+c&done=queue-{what}"
        assert [queue.paused for queue in app.admin.queues()] == [paused]
        assert post(f"/queue/{what}", name="a/b & c").headers["location"].endswith("-idle")


def test_cron(app: Rota, send: Task[[int], None, None], post: Post) -> None:
    """Paused, resumed, and run now."""
    app.cron.add("nightly", "@daily", send, args=(1,))
    post("/cron/pause", name="nightly")
    assert [entry.paused for entry in app.cron.entries()] == [True]
    post("/cron/resume", name="nightly")
    assert [entry.paused for entry in app.cron.entries()] == [False]
    assert post("/cron/run", name="nightly").headers["location"] == "../cron?done=cron-run"
    assert app.jobs.count() == 1


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/jobs/x/retry", {}), ("/jobs/0/delete", {"sure": "yes"}), ("/queue/pause", {"name": ""}),
        ("/queue/pause", {"name": "\0"}), ("/cron/run", {"name": "nowhere"}), ("/cron/pause", {}),
    ],
)  # fmt: skip
def test_what_is_not_there(app: Rota, post: Post, path: str, form: Mapping[str, str]) -> None:
    """A plain page says so, and nothing is made."""
    assert post(path, **form).status in {
        HTTPStatus.NOT_FOUND,
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.CONFLICT,
    }
    assert app.admin.queues() == []


def test_programs(send: Task[[int], None, None], post: Post) -> None:
    """They get what was done, and no redirect."""
    job = send.enqueue(1)
    headers = OWN | {"accept": "application/json"}
    response = post(f"/jobs/{job.id}/cancel", headers=headers, sure="yes")
    found = msgspec.json.decode(response.body)
    assert found == {"action": "jobs-cancel", "of": str(job.id), "changed": True}


def test_from_elsewhere(send: Task[[int], None, None], post: Post) -> None:
    """A page of another host changes nothing."""
    job = send.enqueue(1)
    for headers in ({}, {"sec-fetch-site": "cross-site"}, {"host": "a", "origin": "http://b"}):
        response = post(f"/jobs/{job.id}/cancel", headers=headers, sure="yes")
        assert response.status == HTTPStatus.FORBIDDEN
    assert job.status is State.AVAILABLE


def test_buttons_are_where_the_right_is(
    app: Rota, send: Task[[int], None, None], core: Core
) -> None:
    """A page offers what its request may do, and nothing else."""
    job = send.using(delay=60).enqueue(1)
    app.cron.add("nightly", "@daily", send, args=(1,))
    with app.flow("import") as flow:
        flow.add(send, 1)
    for action in ACTIONS:
        path = action.path.split("/")[1]
        of = {"jobs": job.id, "flows": flow.handle.id}.get(path)
        page = f"/{path}/{of}" if of else f"/{path}"
        last = action.path.rpartition("/")[2]
        if last == "resume":
            continue
        if action.name == "flows-retry":
            assert flow.handle.cancel()
        elif action.name == "flows-cancel":
            assert flow.handle.retry()
        for right in Right:
            request = Request("GET", page, Access.only(right), {"name": "default"})
            offered = f'{of or path}/{last}"' in core.answer(request).body.decode()
            assert offered == (right is action.right), (action.path, right)


def test_what_is_told(app: Rota, core: Core) -> None:
    """A page says what was done; a link cannot make it say anything else."""
    del app
    for name, text in TOLD.items():
        request = Request("GET", "/jobs", Access.read(), {"done": name})
        assert text in core.answer(request).body.decode().replace("&#39;", "'")
    request = Request("GET", "/jobs", Access.read(), {"done": "You are hacked"})
    assert "hacked" not in core.answer(request).body.decode()
