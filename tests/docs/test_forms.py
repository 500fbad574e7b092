"""The forms for issues and changes can be used as they are."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.docs.test_commands import COMMANDS

FOLDER = ROOT / ".github"
FORMS = sorted(
    file for file in (FOLDER / "ISSUE_TEMPLATE").glob("*.yml") if file.name != "config.yml"
)

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="an sdist has no forms")


def form(file: Path) -> dict[str, Any]:
    """What a form says."""
    said: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return said


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_a_form_is_complete(file: Path) -> None:
    """A form has a name and a description; each field has its own id, a label, and choices."""
    said = form(file)
    assert said["name"]
    assert said["description"]
    fields = [field for field in said["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)
    assert {field["type"] for field in fields} <= {"checkboxes", "dropdown", "input", "textarea"}
    chosen = [field for field in fields if field["type"] in {"checkboxes", "dropdown"}]
    assert all(field["attributes"]["options"] for field in chosen)


def test_the_form_for_bugs_asks_for_what_helps() -> None:
    """The smallest program, the doctor's answer and the version cannot be left out."""
    fields = {field.get("id"): field for field in form(FOLDER / "ISSUE_TEMPLATE/bug.yml")["body"]}
    for name in ("program", "doctor", "rota", "database"):
        assert fields[name]["validations"] == {"required": True}
    assert "rota doctor --json" in fields["doctor"]["attributes"]["label"]


@pytest.mark.parametrize(
    "file", [*FORMS, FOLDER / "PULL_REQUEST_TEMPLATE.md"], ids=lambda file: file.stem
)
def test_what_forms_ask_for_exists(file: Path) -> None:
    """Commands of Rota's and files that a form names are there."""
    text = file.read_text(encoding="utf-8")
    for call in re.findall(r"`(rota [a-z ]+)", text):
        assert call.strip() in COMMANDS, call
    for path in re.findall(r"\b(?:[A-Z]+\.md|docs/\w+\.md|(?:examples|tests/\w+)/)", text):
        assert (ROOT / path).exists(), path
