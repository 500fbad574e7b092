"""The same small application, with another queue and with Rota: both run, and do the same."""

import os
import secrets
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from rota import Rota, State
from tests.cli.calling import make_tables
from tests.docs.pages import ROOT, blocks
from tests.fixtures.workers import records

FOLDERS = sorted((ROOT / "examples").glob("from_*"))

SHOWN = {
    "celery": ["receipt for order 42, attempt 2", "reminder for order 42", "total: 60"],
    "procrastinate": [
        "a reindex waits already",
        "customer 7: 10\ncustomer 7: 20\ncustomer 7: 30",
        "reindexed",
        "receipt for order 42, attempt 2",
        "receipt for order 43, attempt 2",
    ],
    "rq": [
        "order 42 is packed",
        "order 42 is on its way",
        "receipt for order 42, attempt 2",
        "reminder for order 42",
        "given up: ",
        "result: 30",
    ],
}
"""What both halves print, in any order."""

ROTA_ALONE = {"celery": ["kept: discarded, no order 99"]}
"""What Rota's half prints besides."""


def printed(peer: str, half: str, **environment: str) -> str:
    """What an example prints until it ends by itself."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / f"from_{peer}" / f"{half}.py")],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def before(peer: str, **environment: str) -> None:
    """Run the other queue's half."""
    if find_spec(peer) is None:
        pytest.skip(f"{peer} is not installed")
    text = printed(peer, "before", **environment)
    # Jobs of another kind may come between those of a customer.
    ordered = "\n".join(sorted(text.splitlines(), key=lambda line: line.startswith("customer")))
    assert [line for line in SHOWN[peer] if line not in ordered] == []


def test_each_example_is_known() -> None:
    """The lists above, the folders and the pages agree."""
    assert [folder.name.removeprefix("from_") for folder in FOLDERS] == sorted(SHOWN)
    pages = sorted((ROOT / "docs" / "coming-from").glob("*.md"))
    assert [page.stem for page in pages] == sorted(SHOWN)


def test_celery() -> None:
    """Celery's half runs, in memory."""
    before("celery")


def test_rq(redis_url: str) -> None:
    """RQ's half runs, on a Redis server."""
    before("rq", REDIS_URL=redis_url, RQ_KEY_PREFIX=f"rota-{secrets.token_hex(8)}")


def test_procrastinate(postgres_url: str) -> None:
    """Procrastinate's half runs, in a database of its own."""
    before("procrastinate", DATABASE_URL=postgres_url)


def test_procrastinates_jobs_are_moved(postgres_url: str) -> None:
    """The page's SQL moves the jobs that wait: each is there once, with args, queue and time."""
    if find_spec("procrastinate") is None:
        pytest.skip("procrastinate is not installed")
    import procrastinate

    page = ROOT / "docs" / "coming-from" / "procrastinate.md"
    [move] = [block.text for block in blocks(page) if block.language == "sql"]
    make_tables(postgres_url)
    connector = procrastinate.SyncPsycopgConnector(conninfo=postgres_url)
    later = datetime(2100, 1, 1, tzinfo=UTC)
    with procrastinate.App(connector=connector).open() as theirs:
        theirs.schema_manager.apply_schema()
        receipt = "shop.send_receipt"
        theirs.configure_task(receipt, allow_unknown=True, queue="mail", priority=5).defer(order=42)
        theirs.configure_task(receipt, allow_unknown=True, schedule_at=later).defer(order=43)
        theirs.configure_task("shop.other", allow_unknown=True).defer(order=44)
        with psycopg.connect(postgres_url) as connection:
            connection.execute(move.encode())
        assert [job.task_name for job in theirs.job_manager.list_jobs()] == ["shop.other"]
    with Rota(postgres_url) as ours:
        second, first = records(ours)
    assert (first.queue, first.priority, first.args) == ("mail", -5, '{"order": 42}')
    assert (second.state, second.scheduled_at) == (State.SCHEDULED, later)


@pytest.mark.parametrize("peer", SHOWN)
def test_rota(peer: str, tmp_path: Path) -> None:
    """Rota's half does the same."""
    text = printed(peer, "after", TMPDIR=str(tmp_path))
    ordered = "\n".join(sorted(text.splitlines(), key=lambda line: line.startswith("customer")))
    wanted = SHOWN[peer] + ROTA_ALONE.get(peer, [])
    assert [line for line in wanted if line not in ordered] == []
    assert list(tmp_path.iterdir()) == []
