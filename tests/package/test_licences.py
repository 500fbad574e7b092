"""What Rota may be installed with has licences that leave its users free."""

from email.message import Message

import pytest

from tests.package.licences import is_free, licences, said


def test_dependencies_leave_users_free() -> None:
    """Each dependency, those of tests included, has licences that are on the list."""
    found = licences()
    assert {"click", "msgspec", "psycopg"} <= found.keys()
    assert [(name, text) for name, text in found.items() if not is_free(text)] == []


@pytest.mark.parametrize(
    ("expression", "free"),
    [
        ("MIT", True),
        ("LGPL-3.0-only", True),
        ("GPL-3.0-only", False),
        ("AGPL-3.0-only", False),
        ("MIT OR GPL-2.0-only", True),
        ("MIT AND GPL-2.0-only", False),
        ("MIT AND LicenseRef-Commercial", False),
        ("MIT AND (Zlib OR GPL-2.0-only)", False),
        ("Free for all", False),
        ("nothing", False),
    ],
)
def test_kinds(expression: str, *, free: bool) -> None:
    """All that must be kept has to be listed; of a choice one is enough; the unreadable is refused."""
    assert is_free(expression) is free


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([("License-Expression", "MIT"), ("License", "see LICENSE")], "MIT"),
        ([("Classifier", "License :: OSI Approved :: MIT License")], "MIT"),
        ([("Classifier", "License :: OSI Approved :: GNU General Public License (GPL)")],
         "GNU General Public License (GPL)"),
        ([("License", "MIT License\n\nCopyright")], "MIT"),
        ([("Classifier", "Programming Language :: Python")], "nothing"),
    ],
)  # fmt: skip
def test_what_is_said(fields: list[tuple[str, str]], words: str) -> None:
    """An expression counts, then classifiers, then the field License; silence is no licence."""
    metadata: Message[str, str] = Message()
    for name, value in fields:
        metadata[name] = value
    assert said(metadata) == words
