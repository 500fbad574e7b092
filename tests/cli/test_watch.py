"""`rota jobs watch`."""

import json
import signal
import threading
import time
from typing import Any

import pytest

from rota.model.job import ClaimedJob, JobId, LeaseId
from rota.model.notes import Note
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.cli.calling import read_until, refused, rota, started
from tests.store.factories import NOBODY, error_json, in_state, running, settle, settlement


@pytest.fixture
def url(store_url: str, store: Store) -> str:
    """The URL of a database that has its tables."""
    assert store.name in store_url
    return store_url


def tell(
    store: Store,
    connection: Connection,
    job: ClaimedJob,
    tenths: int,
    text: str,
    *,
    number: int = 1,
) -> None:
    """A run tells how far it is, and writes a line."""
    now = time.monotonic()
    lease = LeaseId(job.lease)
    connection.run(
        store.note(
            [
                Note(job.id, lease, 1, False, number, now, tenths / 10, None, text),
                Note(job.id, lease, 1, True, number, now, None, "warning", f"line {text}"),
            ]
        )
    )


def test_a_job_that_is_completed(url: str, store: Store, connection: Connection) -> None:
    """Its state, its progress and its lines are shown as they come, and its result at the end."""
    session, [job] = running(store, connection)
    tell(store, connection, job, 4, "four")
    with started("jobs", "watch", job.id, url=url) as process:
        said = read_until(process.stdout, "40 %")
        assert f"job {job.id} (shop.send) is running, attempt 1 of 5, on alpha:4711" in said
        assert "warning line four" in said
        assert "40 %  four" in said
        tell(store, connection, job, 7, "seven", number=2)
        said = read_until(process.stdout, "70 %")
        assert "line four" not in said
        assert "line seven" in said
        ended = time.monotonic()
        settle(store, connection, session, settlement(job, Move.COMPLETE, result='{"total":3}'))
        said = read_until(process.stdout, '"total": 3')
        assert "is completed" in said
        assert process.wait(20) == 0
        assert time.monotonic() - ended < 10


def test_json(url: str, store: Store, connection: Connection) -> None:
    """One object in each line, for each change, with the lines that came since; no args."""
    session, [job] = running(store, connection)
    tell(store, connection, job, 4, "four")
    with started("jobs", "watch", job.id, "--json", url=url) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        tell(store, connection, job, 5, "five", number=2)
        second = json.loads(process.stdout.readline())
        settle(store, connection, session, settlement(job, Move.COMPLETE, result="[1]"))
        last = json.loads(process.stdout.readline())
        assert process.stdout.read() == ""
        assert process.wait(20) == 0
    assert (first["state"], first["progress"]["fraction"]) == ("running", 0.4)
    assert [line["message"] for line in first["log"]] == ["line four"]
    assert [line["message"] for line in second["log"]] == ["line five"]
    assert (last["state"], last["result"], last["log"]) == ("completed", [1], [])
    assert "args" not in first


@pytest.mark.parametrize("state", [State.DISCARDED, State.CANCELLED])
def test_a_job_that_has_not_ended_well(
    url: str, store: Store, connection: Connection, state: State
) -> None:
    """The exit status says so, and the last line why."""
    job = in_state(store, connection, state).id
    result = rota("jobs", "watch", job, url=url)
    refused(result, 1, f"job {job} was {state}")
    assert ("no luck 1" in result.stderr) is (state is State.DISCARDED)
    assert f"is {state}" in result.stdout


def test_no_such_job(url: str) -> None:
    """There is nothing to watch."""
    refused(rota("jobs", "watch", NOBODY, url=url), 1, f"job {NOBODY} does not exist")
    assert rota("jobs", "watch", "x", url=url).exit_code == 2
    assert rota("jobs", "watch", url=url).exit_code == 2


def test_a_job_that_is_deleted_meanwhile(url: str, store: Store, connection: Connection) -> None:
    """The watching ends, and says why."""
    job = in_state(store, connection, State.AVAILABLE).id
    with started("jobs", "watch", job, url=url) as process:
        read_until(process.stdout, "is available")
        connection.run(store.delete([job]))
        assert process.wait(20) == 1
        assert process.stderr is not None
        assert "does not exist" in process.stderr.read()


def test_control_c(url: str, store: Store, connection: Connection) -> None:
    """Only the watching is stopped."""
    _, [job] = running(store, connection)
    with started("jobs", "watch", job.id, url=url) as process:
        read_until(process.stdout, "is running")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr is not None
        assert "the job goes on" in process.stderr.read()
    [record] = connection.run(store.get([job.id]))
    assert record.state is State.RUNNING
    assert not record.cancel_requested


def test_a_failed_attempt(url: str, store: Store, connection: Connection) -> None:
    """It is told while the job waits for the next one."""
    session, [job] = running(store, connection)
    with started("jobs", "watch", job.id, url=url) as process:
        read_until(process.stdout, "is running")
        error = error_json(1, "shop.Broken", "no \x1b[31m luck")
        settle(store, connection, session, settlement(job, Move.RETRY, delay=600, error=error))
        said = read_until(process.stdout, "attempt 1 failed")
        assert "is retryable" in said
        assert "shop.Broken: no \\x1b[31m luck" in said


def test_on_a_terminal(
    url: str, store: Store, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a bar while the job runs; what was said stays above it."""
    monkeypatch.setattr("rota.cli.watching.on_terminal", lambda: True)
    session, [job] = running(store, connection)
    tell(store, connection, job, 4, "four \x1b[31m")
    looked = threading.Event()
    real = store.get
    seen: list[JobId] = []

    def get(jobs: Any) -> Any:
        seen.extend(jobs)
        if len(seen) == 3:
            looked.set()
        return real(jobs)

    monkeypatch.setattr(type(store), "get", staticmethod(get))

    def end() -> None:
        assert looked.wait(20)
        settle(store, connection, session, settlement(job, Move.COMPLETE, result="3"))

    ender = threading.Thread(target=end)
    ender.start()
    result = rota("jobs", "watch", job.id, url=url)
    ender.join()
    assert result.exit_code == 0
    assert "line four \\x1b[31m" in result.stdout
    assert "40 %  four \\x1b[31m" in result.stdout
    assert "is completed" in result.stdout
    assert result.stdout.rstrip().endswith("3")


def test_show(url: str, store: Store, connection: Connection) -> None:
    """`rota jobs show` has the progress and the lines, too; a list does not."""
    _, [job] = running(store, connection)
    tell(store, connection, job, 4, "four")
    said = rota("jobs", "show", job.id, url=url).stdout
    assert "progress  40 %  four" in said
    assert "warning line four" in said
    [shown] = json.loads(rota("jobs", "show", job.id, "--json", url=url).stdout)["jobs"]
    assert shown["progress"]["fraction"] == 0.4
    assert [line["message"] for line in shown["log"]] == ["line four"]
    assert "line four" not in rota("jobs", "list", "--json", url=url).stdout
