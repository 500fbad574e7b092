"""The pages of flows."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec
import pytest

from rota import Discard, Rota, State
from rota.dashboard.access import Access
from rota.dashboard.core import Core
from rota.dashboard.message import Request, Response
from rota.model.flow import FlowState
from tests.dashboard.conftest import Get, drain

Data = Callable[..., Any]
Show = Callable[..., str]

OWN = {"sec-fetch-site": "same-origin"}


@pytest.fixture
def order(app: Rota) -> int:
    """A flow in which the payment has failed: what is to be shipped is skipped, the refund runs."""

    @app.task(name="pay")
    def pay() -> None:
        raise Discard("no cover")

    @app.task(name="work")
    def work(number: int = 0) -> None:
        del number

    with app.flow("order") as flow:
        wide = flow.map(work, range(3), name="pick")
        paid = flow.add(pay, after=[wide])
        group = flow.flow("ship")
        group.add(work, name="label", after=[paid])
        flow.add(work, name="refund", after=[paid], on="failed")
    with app.flow("letters") as other:
        other.add(work)
        other.add(work, name="<b>&", after=[])
    drain(app)
    assert flow.handle.state is FlowState.FAILED
    return flow.handle.id


def test_the_list(app: Rota, order: int, data: Data, page: Show, get: Get) -> None:
    """By name and by state, page by page, the newest first."""
    assert [flow["name"] for flow in data("/flows")["flows"]] == ["letters", "order"]
    assert [flow["id"] for flow in data("/flows", state="failed")["flows"]] == [str(order)]
    assert data("/flows", name="letters", state="failed")["flows"] == []
    assert "There are no such flows" in page("/flows", name="none")
    shown = page("/flows")
    assert f'href="./flows/{order}"' in shown
    assert "pay has failed" in shown
    for wrong in ({"state": "odd"}, {"before": "x"}, {"name": "\0"}):
        assert get("/flows", **wrong).status == HTTPStatus.BAD_REQUEST
    work = app.find_task("work")
    for _ in range(50):
        with app.flow("more") as flow:
            flow.add(work)
    first = data("/flows")
    rest = data("/flows", before=first["before"])
    assert [len(first["flows"]), len(rest["flows"]), rest["before"]] == [50, 2, None]


def test_one_flow(order: int, data: Data, page: Show) -> None:
    """Its nodes with their states and jobs, as a table and as a picture with links."""
    found = data(f"/flows/{order}")
    assert {node["name"]: node["state"] for node in found["nodes"]} == {
        "pick": "completed", "pay": "failed", "ship/label": "skipped", "refund": "completed",
    }  # fmt: skip
    assert {"node": "refund", "after": "pay", "on": "failed"} in found["edges"]
    shown = page(f"/flows/{order}")
    paid = next(node for node in found["nodes"] if node["name"] == "pay")
    # Once in the picture, once in the table, and once by the number of its failed jobs.
    assert shown.count(f'href="../jobs/{paid["first_job"]}"') == 3
    assert 'class="way on-failed"' in shown
    assert "completed · 3 of 3" in shown
    assert "<style" not in shown
    # The jobs of the map, from its last one on.
    [wide] = [node for node in found["nodes"] if node["name"] == "pick"]
    listed = data("/jobs", task="work", before=str(int(wide["last_job"]) + 1))
    assert [job["id"] for job in listed["jobs"]] == ["3", "2", "1"]


def test_a_flow_that_is_not_there(get: Get, core: Core) -> None:
    """Nor an id that none can have."""
    for of in ("1", "x", "0", "9" * 30):
        assert get(f"/flows/{of}").status == HTTPStatus.NOT_FOUND
        for what in ("retry", "cancel"):
            request = Request("POST", f"/flows/{of}/{what}", Access.all(), {}, OWN, {"sure": "yes"})
            found = core.answer(request)
            assert found.status == HTTPStatus.NOT_FOUND
    assert get("/flows/1", after="x").status == HTTPStatus.BAD_REQUEST


def test_names_are_escaped(app: Rota, data: Data, page: Show) -> None:
    """In the picture, its tooltips, and the table."""
    evil = "<b>&'\""
    work = app.task(name="work")(lambda: None)
    with app.flow(evil) as flow:
        flow.add(work, name=evil)
    for path in ("/flows", f"/flows/{flow.handle.id}", "/jobs/1"):
        assert "<b>" not in page(path)
    assert data(f"/flows/{flow.handle.id}")["nodes"][0]["name"] == evil


def test_a_job_says_where_it_belongs(order: int, data: Data, page: Show, app: Rota) -> None:
    """The flow and the node, with a link, even for those who may not see headers.

    Other jobs belong to none.
    """
    job = app.flows.get(order).job("refund").id
    assert data(f"/jobs/{job}")["flow"] == {"id": str(order), "name": "order", "node": "refund"}
    for access in (Access.read(), Access.all()):
        shown = page(f"/jobs/{job}", access=access)
        assert f'<a href="../flows/{order}">' in shown
        assert "rota.node" not in shown
    alone = app.find_task("work").enqueue()
    assert data(f"/jobs/{alone.id}")["flow"] is None


def test_a_job_that_waits_without_an_end(app: Rota, data: Data, page: Show) -> None:
    """A job that waits for other jobs is due at no time."""

    @app.task(name="work")
    def work() -> None: ...

    with app.flow("order") as flow:
        flow.add(work, after=[flow.add(work, name="first")], name="second")
    job = flow.handle.job("second").id
    listed = page("/jobs")
    assert "waits for a signal or other jobs" in listed
    assert "due " not in listed
    assert data(f"/jobs/{job}")["scheduled_at"] is None
    assert ">due<" not in page(f"/jobs/{job}")


@pytest.mark.parametrize("read", [12, 100])
def test_many_nodes(
    app: Rota, data: Data, page: Show, monkeypatch: pytest.MonkeyPatch, read: int
) -> None:
    """They come page by page, whether or not all are read for the picture.

    The picture says what it leaves out.
    """
    monkeypatch.setattr("rota.dashboard.pages.flow.READ", read)
    monkeypatch.setattr("rota.dashboard.pages.flow.ROWS", 10)
    monkeypatch.setattr("rota.drawing.flow_picture.MOST", 8)
    work = app.task(name="work")(lambda: None)
    with app.flow("wide") as flow:
        for number in range(25):
            flow.add(work, name=f"n{number}")
    path, names = f"/flows/{flow.handle.id}", []
    query: dict[str, str] = {}
    while True:
        found = data(path, **query)
        names += [node["name"] for node in found["nodes"]]
        if found["after"] is None:
            break
        query = {"after": found["after"]}
    assert names == [f"n{number}" for number in range(25)]
    assert "only the first 8 boxes are drawn" in page(path)
    assert page(path).count('class="node ') == 8
    assert "<svg xmlns" not in page(path, **query)


def test_retrying_and_cancelling(order: int, app: Rota, core: Core) -> None:
    """What failed is retried; an ended flow is not cancelled; cancelling comes after a question."""

    def act(what: str, **form: str) -> str:
        request = Request("POST", f"/flows/{order}/{what}", Access.all(), {}, OWN, form)
        answer = core.answer(request)
        return answer.headers.get("location", "").partition("done=")[2] or str(answer.status)

    handle = app.flows.get(order)
    assert act("cancel", sure="yes") == "flows-cancel-idle"
    assert act("retry") == "flows-retry"
    assert act("retry") == "flows-retry-idle"
    assert handle.record().state == "running"
    assert act("cancel") == "200"
    assert handle.record().state == "running"
    assert act("cancel", sure="yes") == "flows-cancel"
    assert handle.record().state == "cancelled"
    assert [(deed.action, deed.changed) for deed in app.admin.audit()] == [
        ("flows-cancel", 1), ("flows-retry", 0), ("flows-retry", 1), ("flows-cancel", 0),
    ]  # fmt: skip


def test_a_job_that_is_left_to_its_flow(order: int, data: Data, page: Show, app: Rota) -> None:
    """Its page leads to the flow, whose retry runs it, instead of a button that would do nothing."""
    job = app.flows.get(order).job("pay").id
    shown = page(f"/jobs/{job}")
    assert data(f"/jobs/{job}")["left_to_flow"] is True
    assert f'<a href="../flows/{order}">Retry the flow</a>' in shown
    assert "Retry now" not in shown
    assert app.flows.get(order).retry() == 1
    drain(app)
    assert app.jobs.retry(job, alone=True) == [job]
    drain(app)
    assert data(f"/jobs/{job}")["left_to_flow"] is False
    assert "Retry now" in page(f"/jobs/{job}")


def test_a_selection_is_left_to_its_flow(order: int, app: Rota, core: Core) -> None:
    """The notice says how many jobs were retried and left; for a single one, why nothing was done."""
    job = app.flows.get(order).job("pay").id
    other = app.find_task("pay").enqueue()
    drain(app)
    form = {f"job-{each}": "yes" for each in (job, other.id)}

    def post(path: str, **headers: str) -> Response:
        return core.answer(Request("POST", path, Access.all(), {}, OWN | headers, form))

    response = post("/jobs/retry")
    assert response.headers["location"] == "../jobs?done=jobs-retry-left&changed=1&left=1"
    query = {"done": "jobs-retry-left", "changed": "1", "left": "1"}
    shown = core.answer(Request("GET", "/jobs", Access.read(), query)).body.decode()
    assert "1 of the selected jobs are available again. 1 were left to their flows" in shown
    assert "left=1" not in shown
    told = msgspec.json.decode(post("/jobs/retry", accept="application/json").body)
    assert (told["changed"], told["left"]) == (0, 1)
    response = post(f"/jobs/{job}/retry")
    assert response.headers["location"] == f"../../jobs/{job}?done=jobs-retry-idle"
    assert app.job(job).status is State.DISCARDED
