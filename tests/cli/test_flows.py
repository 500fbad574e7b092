"""`rota flows`, and what `rota jobs show` says of flows."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest

from rota import Discard, Rota, State, Worker, WorkerConfig
from rota.model.flow import FlowOrder
from rota.model.states import Move
from rota.store.connections import Connection
from rota.store.protocol import Store
from rota.store.url import shown
from tests.cli.calling import answer, make_tables, read_until, refused, rota, started
from tests.store.flowing import Flowing, node


@pytest.fixture
def app(store_url: str) -> Iterator[Rota]:
    """An app on a database that is up to date."""
    make_tables(store_url)
    with Rota(store_url) as app:
        yield app


def drain(app: Rota) -> None:
    """Run the jobs there are."""
    Worker(app, WorkerConfig(drain=True, poll=0.2)).run()


def order(app: Rota) -> int:
    """A flow whose payment fails: what is to be shipped is skipped, the refund runs."""

    @app.task(name="pay")
    def pay() -> None:
        raise Discard("no cover")

    @app.task(name="work")
    def work(number: int = 0) -> None:
        del number

    with app.flow("order") as flow:
        picked = flow.map(work, range(3), name="pick")
        paid = flow.add(pay, after=[picked])
        group = flow.flow("ship")
        label = group.add(work, name="label", after=[paid])
        flow.add(work, name="close", on="finished", after=[label, paid])
        flow.add(work, name="refund", after=[paid], on="failed")
    return flow.handle.id


def test_the_list(app: Rota) -> None:
    """By name and state, the newest first, and which page follows."""
    flow = order(app)
    drain(app)
    with app.flow("letters") as other:
        other.add(app.find_task("work"))
    found = answer("flows", "list", url=app.url)["flows"]
    assert [(one["id"], one["name"], one["state"]) for one in found] == [
        (other.handle.id, "letters", "running"),
        (flow, "order", "failed"),
    ]
    assert found[1]["reason"] == "pay has failed"
    for options in (("--state", "failed"), ("--name", "order"), ("--after", other.handle.id)):
        assert [one["id"] for one in answer("flows", "list", *options, url=app.url)["flows"]] == [
            flow
        ]
    result = rota("flows", "list", "--limit", 1, url=app.url)
    assert "letters" in result.stdout
    assert f"--after {other.handle.id}" in result.stderr


def test_a_tree(app: Rota) -> None:
    """Each node once, with its state, its jobs, and why it was skipped."""
    flow = order(app)
    result = rota("flows", "show", flow, url=app.url)
    assert "running, 0 of 5 nodes have ended" in result.stdout
    drain(app)
    told = rota("flows", "show", flow, url=app.url).stdout
    assert f"Flow {flow}: order" in told
    rows = [
        [cell.rstrip() for cell in line.split("\t")] for line in told.splitlines() if "\t" in line
    ]
    assert [row[:3] for row in rows] == [
        ["node", "state", "jobs"],
        ["pick", "completed", "3 completed"],
        ["↓ pay", "failed", "job 4"],
        ["  ├─ ship/", "skipped", "1 cancelled"],
        ["  │  └─ ship/label", "skipped", "job 5"],
        ["  │     ↓ close", "completed", "job 6"],
        ["  └─ refund", "completed", "job 7"],
    ]
    assert rows[4][3].startswith("pay ")
    assert [rows[5][3], rows[6][3]] == ["on finished", "on failed"]


def test_json(app: Rota) -> None:
    """The nodes with their counts, and what they wait for by name."""
    flow = order(app)
    drain(app)
    found = answer("flows", "show", flow, url=app.url)
    assert found["flow"]["state"] == "failed"
    pick = found["nodes"][0]
    assert {name: pick[name] for name in ("name", "map", "jobs", "completed", "left")} == {
        "name": "pick", "map": True, "jobs": 3, "completed": 3, "left": 0,
    }  # fmt: skip
    assert {"node": "refund", "after": "pay", "on": "failed"} in found["edges"]
    assert found["more"] is False
    few = answer("flows", "show", flow, "--limit", 2, url=app.url)
    assert [len(few["nodes"]), few["more"]] == [2, True]
    assert "the first 2 of 5 nodes" in rota("flows", "show", flow, "--limit", 2, url=app.url).stderr


def test_the_picture(app: Rota, tmp_path: Path) -> None:
    """Into a file, or to standard output."""
    flow = order(app)
    file = tmp_path / "order.svg"
    result = rota("flows", "show", flow, "--svg", file, url=app.url)
    assert result.exit_code == 0, result.output
    assert file.read_text().startswith("<svg ")
    assert rota("flows", "show", flow, "--svg", url=app.url).stdout == file.read_text()
    refused(rota("flows", "show", flow, "--svg", tmp_path, url=app.url), 1, "cannot be written")


def test_names_are_harmless(app: Rota) -> None:
    """What a terminal obeys is escaped; names are checked as given, and may be stored otherwise."""
    evil = "red \x1b[31m"
    made = app.database.run(
        app.database.store.flows.create(FlowOrder(evil, [node("bell \x07")], 0.0))
    )
    for command in (("show", made.flow), ("list",), ("watch", made.flow)):
        if command[0] == "watch":
            app.flows.get(made.flow).cancel()
        told = rota("flows", *command, url=app.url).stdout
        assert "\x1b" not in told
        assert "\x07" not in told
        assert "\\x1b[31m" in told


def test_watching(app: Rota) -> None:
    """A line for each change until the flow has ended; the exit code says how."""
    flow = order(app)
    with started("flows", "watch", flow, url=app.url) as process:
        said = read_until(process.stdout, "node pick")
        assert f"flow {flow} (order) is running, 0 of 5 nodes have ended" in said
        drain(app)
        said += read_until(process.stdout, f"flow {flow} has failed")
        assert "node pay has failed, job 4" in said
        assert "node ship/label is skipped, job 5: pay" in said
        assert process.wait(20) == 1
        assert process.stderr is not None
        assert process.stderr.read() == f"Error: flow {flow} has failed: pay has failed\n"


def test_watching_as_json(app: Rota) -> None:
    """An object in each line, with the nodes that have changed."""
    flow = order(app)
    drain(app)
    result = rota("flows", "watch", flow, "--json", url=app.url)
    assert result.exit_code == 1
    [line] = result.stdout.splitlines()
    found = json.loads(line)
    assert found["flow"]["state"] == "failed"
    assert len(found["nodes"]) == 5


def test_a_flow_that_is_completed(app: Rota) -> None:
    """Then watching ends well."""
    work = app.task(name="work")(lambda: None)
    with app.flow("letters") as flow:
        flow.add(work)
    drain(app)
    result = rota("flows", "watch", flow.handle.id, url=app.url)
    assert result.exit_code == 0, result.output
    assert f"flow {flow.handle.id} is completed, after" in result.stdout


def test_ctrl_c_ends_the_watching(app: Rota) -> None:
    """And not the flow."""
    flow = order(app)
    with started("flows", "watch", flow, url=app.url) as process:
        read_until(process.stdout, "node pick")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr is not None
        assert "the flow goes on" in process.stderr.read()


def test_cancelling(app: Rota) -> None:
    """What waits is cancelled; what has ended, and what is not there, is said."""
    flow = order(app)
    result = rota("flows", "cancel", flow, url=app.url)
    assert (result.exit_code, result.stdout) == (0, f"flow {flow} is cancelled\n")
    refused(rota("flows", "cancel", flow, url=app.url), 1, "is cancelled already")
    refused(rota("flows", "cancel", 999, url=app.url), 1, "flow 999 does not exist")
    with app.flow("more") as other:
        other.add(app.find_task("work"))
    found = answer("flows", "cancel", other.handle.id, url=app.url)
    assert found == {
        "flows": {str(other.handle.id): {"cancelled": True, "state": "cancelled"}}, "missing": [],
    }  # fmt: skip


def test_retrying(app: Rota) -> None:
    """What has failed is available again; where nothing has, that is said."""
    flow = order(app)
    refused(rota("flows", "retry", flow, url=app.url), 1, "is running, and nothing in it")
    drain(app)
    result = rota("flows", "retry", flow, url=app.url)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"flow {flow} is running; 1 job is available again\n"
    assert "retried   once" in rota("flows", "show", flow, url=app.url).stdout
    refused(rota("flows", "retry", 999, url=app.url), 1, "flow 999 does not exist")


@pytest.mark.parametrize("command", ["show", "watch"])
def test_a_flow_that_is_not_there(app: Rota, command: str) -> None:
    """It may be gone."""
    refused(rota("flows", command, 12, url=app.url), 1, "there is no flow 12")


def test_a_job_says_where_it_belongs(app: Rota) -> None:
    """The flow and the node; other jobs belong to none."""
    flow = order(app)
    alone = app.find_task("work").enqueue()
    told = rota("jobs", "show", 4, url=app.url).stdout
    assert f"flow      {flow} (order), node pay" in told
    assert "rota.node" not in told
    found = answer("jobs", "show", 4, alone.id, url=app.url)["jobs"]
    assert [job["flow"] for job in found] == [{"id": flow, "name": "order", "node": "pay"}, None]


def test_retrying_a_job_of_a_node_that_has_ended(app: Rota) -> None:
    """Its flow's retry runs it with what waits for it, so it is left; `--alone` runs it.

    The command says how.
    """
    flow = order(app)
    drain(app)
    job = app.flows.get(flow).job("pay").id
    result = rota("jobs", "retry", job, url=app.url)
    refused(
        result,
        1,
        f"job {job} belongs to node pay of flow {flow} (order), which has ended",
        f"`rota flows retry {flow} --url {quote(shown(app.url))}` runs it again with what waits for it",
    )
    assert app.job(job).status is State.DISCARDED
    result = rota("jobs", "retry", job, "--json", url=app.url)
    assert json.loads(result.stdout) == {
        "retried": [],
        "unchanged": {str(job): "discarded"},
        "missing": [],
    }
    result = rota("jobs", "retry", job, "--alone", url=app.url)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"job {job} is available again",
        f"job {job} runs alone: node pay of flow {flow} (order) has ended",
    ]
    assert app.job(job).status is State.AVAILABLE


def test_retrying_all_leaves_flows_alone(app: Rota) -> None:
    """What a retry of flows runs again is left out, and named; with --alone it runs as well."""
    flow = order(app)
    app.find_task("pay").enqueue()
    drain(app)
    job = app.flows.get(flow).job("pay").id
    result = rota("jobs", "retry", "--all-discarded", "--dry-run", url=app.url)
    assert result.stdout == "2 jobs would be retried\n"
    assert "jobs of flows' nodes that have ended would be left as they are" in result.stderr
    result = rota("jobs", "retry", "--all-discarded", url=app.url)
    assert (result.exit_code, result.stdout) == (0, "1 job is available again\n")
    assert (
        f"1 job of a flow's node that has ended was not retried: `rota flows retry {flow} "
        in result.stderr
    )
    drain(app)
    again = rota("jobs", "retry", "--task", "pay", "--json", url=app.url)
    assert json.loads(again.stdout)["unchanged"] == {str(job): "discarded"}
    assert app.flows.get(flow).retry() == 1
    drain(app)
    assert rota("jobs", "retry", "--task", "pay", "--alone", url=app.url).stdout.startswith(
        "2 jobs"
    )
    assert app.job(job).status is State.AVAILABLE


def test_retrying_a_job_of_a_node_that_goes_on(
    store_url: str, store: Store, connection: Connection
) -> None:
    """It counts for its node: nothing is to be said of that."""
    flow = Flowing(store, connection, node("a", jobs=2))
    one, _ = [job.id for job in flow.claim()]
    flow.settle(one, move=Move.DISCARD)
    flow.decide()
    result = rota("jobs", "retry", one, url=store_url)
    assert (result.exit_code, result.stdout) == (0, f"job {one} is available again\n")


def test_retrying_what_no_flow_would(app: Rota) -> None:
    """A completed job runs again at once; that it does so alone is said."""
    work = app.task(name="work")(lambda: None)
    with app.flow("letters") as flow:
        flow.add(work)
    drain(app)
    job, number = flow.handle.job("work").id, flow.handle.id
    result = rota("jobs", "retry", job, url=app.url)
    assert result.exit_code == 0
    assert f"job {job} runs alone: node work of flow {number} (letters) has ended" in result.stdout
