"""`rota worker` with several apps, and what its child processes log; as a process of its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rota import Rota, State
from rota.model.job import Order
from rota.model.options import JobOptions
from tests.cli.calling import finished, make_tables

APP = """
import logging
import warnings
from collections.abc import Iterator
from rota import PROVIDED, Rota

rota = Rota()

@rota.lifespan(executor="process", name="engine")
def engine() -> Iterator[str]:
    yield "the engine of {name}"

@rota.task(executor="process", store_result=True)
def compute(number: int, engine: str = PROVIDED) -> str:
    logging.getLogger("{name}").info("computing %d", number)
    warnings.warn("careful")
    return engine

@rota.task(queue="{name}", store_result=True)
def send(number: int) -> int:
    return number
"""


class Project:
    """Two apps of one database, `shop.py` and `mail.py`, from outside."""

    def __init__(self, url: str, folder: Path) -> None:
        for name in ("shop", "mail"):
            (folder / f"{name}.py").write_text(APP.replace("{name}", name))
        make_tables(url)
        self.url = url
        self.folder = folder
        self.app = Rota(url)

    def enqueue(self, task: str, queue: str = "default") -> int:
        """A job of a task."""
        order = Order(JobOptions(queue=queue).spec(task), ('{"number":7}',))
        [job] = self.app.database.run(self.app.database.store.enqueue(order))
        return job

    def work(self, *words: str, **environment: str) -> Any:
        """Run a worker until there is nothing left to do."""
        return finished("worker", *words, url=self.url, cwd=self.folder, **environment)


@pytest.fixture
def project(store_url: str, tmp_path: Path) -> Iterator[Project]:
    """The project, and its database."""
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(store_url, folder)
    yield project
    project.app.close()


@pytest.mark.parametrize("where", ["words", "variable"])
def test_the_tasks_of_all(project: Project, where: str) -> None:
    """One worker runs the jobs of all apps named there or in ROTA_APP, and counts them together."""
    jobs = [project.enqueue(f"{name}.send", name) for name in ("shop", "mail")]
    if where == "words":
        run = project.work("shop:rota", "mail", "--drain", "--json")
    else:
        run = project.work("--drain", "--json", ROTA_APP="shop:rota mail")
    assert run.returncode == 0, run.stderr
    assert [project.app.job(job).status for job in jobs] == [State.COMPLETED] * 2
    assert json.loads(run.stdout) == {"settled": {"complete": 2}}
    log = [json.loads(line) for line in run.stderr.splitlines()]
    [began] = [line["message"] for line in log if line.get("event") == "WorkerStarted"]
    assert began.endswith("queues default, mail, shop")


def test_in_child_processes(project: Project) -> None:
    """Child processes give handlers what their own app's lifespans yield, and log like the worker."""
    jobs = {name: project.enqueue(f"{name}.compute") for name in ("shop", "mail")}
    run = project.work("shop", "mail", "--drain", "--json", "--processes", "1")
    assert run.returncode == 0, run.stderr
    for name, job in jobs.items():
        assert project.app.job(job).result(0) == f"the engine of {name}"
    log = [json.loads(line) for line in run.stderr.splitlines()]
    for name, job in jobs.items():
        [line] = [line for line in log if line["logger"] == name]
        fields = {"job": job, "task": f"{name}.compute", "queue": "default", "attempt": 1}
        assert line.items() >= {"level": "info", "message": "computing 7", **fields}.items()
    assert sum("careful" in line["message"] for line in log) == 2


def test_children_log_as_the_worker(project: Project) -> None:
    """Without `--json` too: what a handler in a child process logs is a line like the worker's."""
    project.enqueue("shop.compute")
    run = project.work("shop", "--drain")
    assert run.returncode == 0, run.stderr
    [line] = [line for line in run.stderr.splitlines() if "computing" in line]
    assert line.split()[2:] == ["INFO", "computing", "7"]


def test_no_app_at_all(project: Project) -> None:
    """Without an app the error says how to name one."""
    run = project.work("--drain")
    assert run.returncode == 2
    assert "shop.tasks:rota" in run.stderr
    assert "ROTA_APP" in run.stderr


def test_a_wrong_name(project: Project) -> None:
    """An error says which name is wrong, and where it stands."""
    run = project.work("shop", "post:rota", "--drain")
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert "no module 'post'" in run.stderr
    assert "ROTA_APP" not in run.stderr
    run = project.work("--drain", ROTA_APP="shop post:rota")
    assert "ROTA_APP: there is no module 'post'" in run.stderr


def test_two_databases(project: Project) -> None:
    """Apps of two databases are refused, and `--url` gives them one."""
    (project.folder / "bank.py").write_text(
        'from rota import Rota\nrota = Rota("sqlite:///bank.db")\n@rota.task\ndef pay() -> None: ...\n'
    )
    run = project.work("shop", "bank", "--drain")
    assert run.returncode == 2
    assert "two databases" in run.stderr
    assert "--url" in run.stderr
    assert project.work("shop", "bank", "--drain", "--url", project.url).returncode == 0


def test_the_app_of_a_command(project: Project) -> None:
    """A command with `--app` takes the app from ROTA_APP, if that names one; else it asks which."""

    def add(*words: str, named: str) -> Any:
        return finished(
            "cron", "add", "nightly", "@daily", "--task", "mail.send", "--args", "[1]", *words,
            url=project.url, cwd=project.folder, ROTA_APP=named,
        )  # fmt: skip

    asked = add(named="shop mail")
    assert asked.returncode == 2
    assert (
        "ROTA_APP names several apps (shop, mail); say which one has the task with --app"
        in asked.stderr
    )
    added = add("--app", "mail", named="shop mail")
    assert added.returncode == 0, added.stderr
    again = add(named="mail:rota")
    assert "there is already a cron entry named 'nightly'" in again.stderr
