"""The pages name everything that users can meet."""

import inspect
import re
from pathlib import Path

import pytest

import rota
from rota import Rota, State, Task, errors, events
from rota.app.crontab import Crontab
from rota.cli import supervise
from rota.store.postgres.schema import VERSION
from rota.store.url import VARIABLE
from tests.docs.pages import ROOT, everything


def missing(names: list[str]) -> list[str]:
    """The names that no page has in backticks or in a block."""
    text = everything()
    return [name for name in names if not re.search(rf"(?<!\w){re.escape(name)}\b", text)]


def subclasses(kind: type) -> list[str]:
    """The names of all classes of the same module that derive from a class."""
    names: list[str] = []
    finer: type
    for finer in kind.__subclasses__():
        if finer.__module__ == kind.__module__:
            names += [finer.__name__, *subclasses(finer)]
    return names


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(rota.__all__, id="public names"),
        pytest.param(subclasses(errors.RotaError), id="errors"),
        pytest.param(subclasses(events.Event), id="events"),
        pytest.param([f"`{state}`" for state in State], id="states"),
        pytest.param(sorted(inspect.signature(Rota).parameters), id="app"),
        pytest.param(sorted(inspect.signature(Rota.task).parameters.keys() - {"self"}), id="task"),
        pytest.param(
            sorted(inspect.signature(Crontab.__call__).parameters.keys() - {"self"}), id="cron"
        ),
        pytest.param(
            sorted(inspect.signature(Task.using).parameters.keys() - {"self", "unknown"}), id="using"
        ),
        pytest.param(
            [f"ctx.{name}" for name in vars(rota.Context)
             if not name.startswith("_")
                 and name not in {"alone", "request_cancel", "noticed", "added"}],
            id="context",
        ),
        pytest.param([VARIABLE], id="variables"),
    ],
)  # fmt: skip
def test_everything_is_mentioned(names: list[str]) -> None:
    """Each public name, error, event, state, setting and option stands in some page."""
    listed = [name for name in names if not name.startswith("`")]
    text = everything()
    quoted = [name for name in names if name.startswith("`") and name not in text]
    assert missing(listed) + quoted == []


def test_methods_are_mentioned() -> None:
    """Each public method of a task, a handle and an app that users call stands in some page."""
    inner = {"declarations", "given_codec", "result_annotation"}
    kinds = (Task, rota.JobHandle, Rota, Crontab)
    names = {
        name
        for kind in kinds
        for name, value in vars(kind).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    }
    assert missing(sorted(names - inner)) == []


def test_an_app_has_what_its_page_says(tmp_path: Path) -> None:
    """No more and no less: what users do not need is no attribute of the app."""
    page = (ROOT / "docs" / "guides" / "tasks.md").read_text(encoding="utf-8")
    section = page.partition("\n## What an app has\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    app = Rota(f"sqlite:///{tmp_path}/rota.db")
    assert {name for name in dir(app) if not name.startswith("_")} == documented


def test_lines_of_supervise_are_explained() -> None:
    """Each kind of line that `rota supervise` prints stands in the table of the page."""
    told = re.findall(r"self\._tell\(([^)]*)", inspect.getsource(supervise))
    kinds = {kind for call in told for kind in re.findall(r'"([a-z ]{4,12})"', call)}
    assert {"hidden", "over already", "would end"} <= kinds
    assert [kind for kind in sorted(kinds) if f"| `{kind}` |" not in everything()] == []


def test_the_version_of_the_tables() -> None:
    """The sample of the doctor is of today's tables."""
    page = (ROOT / "docs" / "operate" / "doctor.md").read_text(encoding="utf-8")
    assert re.findall(r"tables are up to date \(version (\d+)\)", page) == [str(VERSION)]
