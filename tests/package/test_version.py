"""One version for both distributions, and a section of the changelog for it."""

import re

from rota import __version__
from tests.docs.pages import ROOT
from tests.package.built import Built
from tests.package.environment import metadata


def test_both_distributions_have_the_version(built: Built) -> None:
    """The version is that of `rota.__version__`."""
    assert metadata(built.wheel).version == __version__


def test_the_lab_needs_the_same_version(lab: Built) -> None:
    """A lab never meets another Rota than that with which it was tested."""
    assert f"rota[postgres]=={__version__}" in (metadata(lab.wheel).requires or ())


def test_both_promise_the_same_pythons(rota: Built, lab: Built) -> None:
    """What is said of Python and the licence is said of both."""
    fields = ("Requires-Python", "License-Expression", "Classifier")
    said = [
        [metadata(built.wheel).metadata.get_all(field) for field in fields] for built in (rota, lab)
    ]
    assert said[0] == said[1]
    assert (ROOT / "lab/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_changelog_knows_the_version() -> None:
    """The newest version of the changelog is that of the code; what comes next is above it."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, before = re.findall(r"^## (.+)$", changelog, re.MULTILINE)[:2]
    assert __version__ == (before if newest == "[Unreleased]" else newest)
