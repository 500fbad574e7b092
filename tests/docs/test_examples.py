"""The examples run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

SHOWN = {
    "cron": [
        "two ticks, 1 second apart",
        "report for tenant 7",
        "nightly: 2026-03-28 02:30:00+01:00",
        "nightly: 2026-03-29 03:00:00+02:00",
        "nightly: 2026-03-30 02:30:00+02:00",
    ],
    "quickstart": ["stored: available", "ran: completed", "Hello, Ada!"],
    "transaction_sqlite3": [
        "rolled back: 0 orders, 0 jobs",
        "committed: 1 orders, 1 jobs",
        "receipt for order 42",
    ],
    "transaction_sqlalchemy": [
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
    "batches": [
        "1000 jobs, 10 calls",
        "the last one: 999 words",
        "1 failed: nothing to count",
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
    "crawler": [
        "new: 20 sites",
        "again: 20 sites are there already",
        "site:site0.example: completed after 3 rounds",
    ],
    "flask_mail": [
        "Ada: signed up",
        "Eve: refused",
        "shop@example.org: Welcome, Ada!",
    ],
    "tenants": [
        "the small tenant's 5 jobs were among the first 20 of 205",
        "at most at once: 2 for acme, 2 for other",
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


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_example(file: Path, tmp_path: Path) -> None:
    """An example ends by itself, prints what it shows, and leaves nothing where it was run."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("ROTA_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(file)],
        cwd=tmp_path, env=inherited, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for line in SHOWN[file.stem]:
        assert line in done.stdout
    assert list(tmp_path.iterdir()) == []
