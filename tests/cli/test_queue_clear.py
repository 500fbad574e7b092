"""`rota queues clear`."""

import contextlib
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

from rota.model.job import JobId
from rota.model.states import State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.cli.calling import ROTA, answer, refused, rota, started
from tests.fixtures.workers import until
from tests.store.factories import claim, enqueue, one_of_each, open_session
from tests.store.test_counters import counted, told


@pytest.fixture
def url(store_url: str, store: Store) -> str:
    """The URL of a database that has its tables."""
    assert store.name in store_url
    return store_url


def left(store: Store, connection: Connection, jobs: dict[State, JobId]) -> set[State]:
    """The states of the jobs that are left."""
    found = {job.id for job in connection.run(store.get(list(jobs.values())))}
    return {state for state, job in jobs.items() if job in found}


def test_what_waits(url: str, store: Store, connection: Connection) -> None:
    """Without a state, waiting jobs are deleted; running and finished jobs stay."""
    jobs = one_of_each(store, connection)
    others = enqueue(store, connection, 2, queue="mail")
    cleared = answer("queues", "clear", "default", "--yes", url=url)
    assert cleared == {
        "queue": "default",
        "deleted": {"scheduled": 1, "available": 1, "retryable": 1},
        "running": 1,
    }
    assert left(store, connection, jobs) == {
        State.RUNNING, State.COMPLETED, State.DISCARDED, State.CANCELLED,
    }  # fmt: skip
    assert len(connection.run(store.get(others))) == 2
    assert told(store, connection) == counted(store, connection)


def test_the_states_that_are_named(url: str, store: Store, connection: Connection) -> None:
    """Several states, in any order; then all but running."""
    jobs = one_of_each(store, connection)
    said = rota("queues", "clear", "default", "--state", "discarded, completed", "--yes", url=url)
    assert said.stdout == "deleted 1 completed, 1 discarded job(s)\n1 running job(s) are left\n"
    assert State.AVAILABLE in left(store, connection, jobs)
    rota("queues", "clear", "default", "--state", "all", "--yes", url=url)
    assert left(store, connection, jobs) == {State.RUNNING}
    said = rota("queues", "clear", "default", "--state", "all", "--yes", url=url)
    assert said.stdout.startswith("queue default has no such jobs\n")


def test_many(url: str, store: Store, connection: Connection) -> None:
    """Jobs are deleted batch after batch; jobs enqueued meanwhile would stay."""
    enqueue(store, connection, 2500)
    held = claim(store, connection, open_session(store, connection), 10)
    cleared = answer("queues", "clear", "default", "--yes", url=url)
    assert (cleared["deleted"]["available"], cleared["running"]) == (2490, len(held))
    assert told(store, connection) == counted(store, connection)


def test_no_user_to_ask(url: str, store: Store, connection: Connection) -> None:
    """Without a terminal and without --yes no job is deleted, and the numbers are named."""
    enqueue(store, connection, 3)
    result = rota("queues", "clear", "default", url=url)
    refused(result, 2, "Delete 3 available job(s) of queue default?", "--yes")
    assert len(counted(store, connection)) == 1
    # With nothing to delete there is nothing to ask.
    assert rota("queues", "clear", "default", "--state", "discarded", url=url).exit_code == 0


@pytest.mark.parametrize(("word", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_the_user_is_asked(
    url: str,
    store: Store,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    *,
    word: str,
    code: int,
) -> None:
    """Only a yes deletes."""
    from click.testing import CliRunner

    from rota.cli.main import cli

    monkeypatch.setattr("rota.cli.asking.can_ask", lambda: True)
    enqueue(store, connection, 3)
    result = CliRunner().invoke(cli, ["queues", "clear", "default", "--url", url], input=word)
    assert result.exit_code == code, result.output
    assert "Delete 3 available job(s) of queue default?" in result.stderr
    assert bool(counted(store, connection)) is bool(code)
    assert ("nothing was deleted" in result.stderr) is bool(code)


def test_ctrl_c_at_the_question(url: str, store: Store, connection: Connection) -> None:
    """Ctrl-C has its own exit status there, too, and nothing is deleted."""
    enqueue(store, connection, 3)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*ROTA, "queues", "clear", "default", "--url", url],
        stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        while process.stderr.read(1) != "?":
            assert process.poll() is None
        while process.poll() is None:
            # A Ctrl-C just before Python begins to read is heeded only with the next Ctrl-C.
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        said = process.stderr.read()
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 130, said
    assert said.endswith("Error: stopped by Ctrl-C\n")
    assert len(counted(store, connection)) == 1


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ("running", "rota jobs cancel"),
        ("waiting", "'waiting' is not a state; use scheduled, available"),
        ("available,,", "'' is not a state"),
        ("", "'' is not a state"),
    ],
)
def test_states_that_cannot_be_cleared(url: str, states: str, words: str) -> None:
    """Impossible states are refused; the message lists the possible ones."""
    result = rota("queues", "clear", "default", "--state", states, "--yes", url=url)
    assert result.exit_code == 2
    assert words in re.sub(r"\s+", " ", result.stderr)


def test_stopped_half_way(url: str, store: Store, connection: Connection, tmp_path: Path) -> None:
    """Ctrl-C ends it between two batches: the other jobs are whole, and the numbers are right."""
    del tmp_path
    enqueue(store, connection, 30_000)
    with started("queues", "clear", "default", "--yes", url=url) as process:
        until(lambda: told(store, connection)["default", State.AVAILABLE] < 30_000)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in {0, 130}
    there = told(store, connection)["default", State.AVAILABLE]
    assert there < 30_000
    assert told(store, connection) == counted(store, connection)
    found = claim(store, connection, open_session(store, connection), 100)
    assert len(found) == min(100, there)
