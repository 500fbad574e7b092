"""Words about the engine's tables stay inside the engine."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, prose

DOCS = ROOT / "docs"
INSIDE = {"how/benchmarks.md", "how/engine.md", "how/internals.md", "reference/glossary.md"}
"""The pages for readers who want to know how it works."""

FOR_USERS = [
    ROOT / "README.md",
    *sorted(
        page
        for page in DOCS.rglob("*.md")
        if str(page.relative_to(DOCS)) not in INSIDE and page.parent.name != "lab"
    ),
]
WORDS = re.compile(r"\b(?:lane|ring|segment|squeeze)s?\b", re.IGNORECASE)
QUOTED = re.compile(r"`[^`]*`|\]\([^)]*\)")
"""Code, and where links lead."""


@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: page.name)
def test_no_words_of_the_engine(page: Path) -> None:
    """A page for users does without lanes, rings, segments and squeezes."""
    assert WORDS.findall(QUOTED.sub("", prose(page))) == []
