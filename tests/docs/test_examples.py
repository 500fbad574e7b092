"""The examples run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, says

GALLERY = ROOT / "examples"
EXAMPLES = sorted(GALLERY.glob("*.py"))
SERVICES = {"django_shop", "fastapi_orders"}
"""Applications that run until they are stopped, and have tests of their own: tests/contrib."""
APPLICATIONS = sorted(
    page.parent for page in GALLERY.glob("*/README.md") if page.parent.name not in SERVICES
)

SHOWN = {
    "cron": [
        "two ticks, 1 second apart",
        "report for tenant 7",
        "nightly: 2026-03-28 02:30:00+01:00",
        "nightly: 2026-03-29 03:00:00+02:00",
        "nightly: 2026-03-30 02:30:00+02:00",
    ],
    "quickstart": ["stored: available", "ran: completed", "Hello, Ada!"],
    "transaction": [
        "rolled back: 0 orders, 0 jobs",
        "committed: 1 orders, 1 jobs",
        "receipt for order 42",
    ],
    "outcomes": [
        "flaky: completed after 3 attempts",
        "snoozing: completed after 1 attempts",
        "hopeless: discarded after 1 attempts, no such address",
        "broken: discarded after 2 attempts, it never works",
    ],
    "exactly_once": [
        "the first worker ended with 9; the account has 0",
        "10 payments of 100 in",
        "attempts; the account has 1000",
    ],
    "lifespan": [
        "open shop\nopen mail\nreceipt for a lamp\nclose mail\nclose shop, which sold a lamp",
        'stored: {"item":"a lamp"}',
    ],
    "flask_mail": [
        "Ada: signed up",
        "Eve: refused",
        "shop@example.org: Welcome, Ada!",
    ],
    "processes": [
        "crash: discarded, the child process ended with",
        "biggest prime below 10000: 9973",
    ],
}
"""What each example prints, among other things."""


def test_each_example_is_known() -> None:
    """The list above and the folder agree."""
    assert [file.stem for file in EXAMPLES] == sorted(SHOWN)


def test_the_gallery_has_them_all() -> None:
    """The gallery's page leads to each program and folder beside it."""
    linked = re.findall(r"\]\(([\w./]+)\)", (GALLERY / "README.md").read_text(encoding="utf-8"))
    inside = {link.partition("/")[0] for link in linked if not link.startswith("..")}
    there = {file.name for file in EXAMPLES} | {
        folder.name for folder in GALLERY.iterdir() if folder.is_dir() and any(folder.glob("*.py"))
    }
    assert inside == there


def printed(*arguments: str, folder: Path, **environment: str) -> str:
    """What a program prints until it ends by itself, without a warning."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("ROTA_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder, env=inherited | environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_example(file: Path, tmp_path: Path) -> None:
    """An example ends by itself, prints what it shows, and leaves nothing where it was run."""
    text = printed(str(file), folder=tmp_path)
    assert [line for line in SHOWN[file.stem] if line not in text] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", APPLICATIONS, ids=lambda folder: folder.name)
def test_application(folder: Path, tmp_path: Path) -> None:
    """An application prints what its page says, by the page's own command, and leaves nothing behind."""
    command, output = blocks(folder / "README.md")[:2]
    assert command.text == f"python -m {folder.name}\n"
    text = printed(
        "-m", folder.name, folder=tmp_path, PYTHONPATH=str(GALLERY), TMPDIR=str(tmp_path)
    )
    assert says(output, text), text
    assert list(tmp_path.iterdir()) == []
