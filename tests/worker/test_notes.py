"""What handlers tell of their runs, from every executor, and how rarely it is written."""

import asyncio
import contextlib
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from rota import Context, Discard, JobFailed, JobHandle, JobRecord, Rota, State, StoreUnavailable
from rota.errors import StoreError
from rota.model.notes import LINES, Note
from rota.worker import note_writer as writing
from tests.fixtures.workers import LONG, WorkerProcess, until, working
from tests.store.factories import running
from tests.worker import chores


@pytest.fixture
def written(app: Rota, monkeypatch: pytest.MonkeyPatch) -> list[list[Note]]:
    """What each statement has written."""
    found: list[list[Note]] = []
    real = app.database.store.note

    def note(told: list[Note]) -> Any:
        found.append(list(told))
        return real(told)

    monkeypatch.setattr(app.database.store, "note", note)
    return found


def lines(record: JobRecord) -> list[str]:
    return [one.message for one in record.log]


def test_a_thousand_calls(app: Rota, written: list[list[Note]]) -> None:
    """They are written a few times, and what was told last is there when the job has ended."""

    @app.task(name="count")
    def count(ctx: Context) -> None:
        for step in range(1000):
            ctx.progress(step / 1000, f"step {step}")
            ctx.log(f"line {step}")
        # From now on nothing is written for a second, unless the job ends.
        until(lambda: written)
        ctx.progress(1.0, "done")

    with working(app):
        record = count.enqueue().wait(LONG)
    assert record.state is State.COMPLETED
    assert record.progress is not None
    assert (record.progress.fraction, record.progress.message) == (1.0, "done")
    assert lines(record)[-1] == "line 999"
    assert [one.number for one in record.log[1:]] == list(range(1001 - LINES, 1001))
    assert len(written) <= 4
    assert sum(len(told) for told in written) <= 4 * (1 + LINES)


@pytest.mark.parametrize("asynchronous", [True, False])
def test_while_it_runs(app: Rota, written: list[list[Note]], *, asynchronous: bool) -> None:
    """The first progress is there at once, later ones about once a second, all in one statement."""
    go = threading.Event()

    def tell(ctx: Context) -> None:
        ctx.progress(0.5, "half")

    @app.task(name="thread")
    def in_thread(ctx: Context) -> None:
        tell(ctx)
        while not go.wait(0.005):
            tell(ctx)

    @app.task(name="loop")
    async def on_loop(ctx: Context) -> None:
        tell(ctx)
        while not go.is_set():
            await asyncio.sleep(0.005)
            tell(ctx)

    task: Any = on_loop if asynchronous else in_thread
    with working(app):
        handles: list[JobHandle[Any]] = [task.enqueue() for _ in range(5)]
        until(lambda: all(one.record().progress for one in handles), "the progress of all")
        assert all(one.status is State.RUNNING for one in handles)
        count = len(written)
        until(lambda: len(written) >= count + 2, "two more rounds")
        assert {len(told) for told in written[count:]} == {5}
        go.set()
        for one in handles:
            one.wait(LONG)


def test_from_a_child_process(app: Rota, tmp_path: Path, written: list[list[Note]]) -> None:
    """A child tells its worker, at a pace of its own, and everything before its answer."""
    task = chores.adopt(app, chores.tell)
    with working(app, processes=1):
        handle = task.enqueue(str(tmp_path))
        until(lambda: handle.record().log, "the first line")
        half = handle.record()
        assert half.state is State.RUNNING
        assert half.progress is not None
        assert half.progress.message == "step 999"
        chores.note(str(tmp_path), "go")
        record = handle.wait(LONG)
    assert record.progress is not None
    assert record.progress.message == "done"
    assert [(one.level, one.message) for one in record.log] == [
        ("warning", "half-way"), ("info", "the end"),
    ]  # fmt: skip
    assert sum(len(told) for told in written) <= 12


def test_a_child_that_crashes(app: Rota, tmp_path: Path) -> None:
    """What it told before stays with the job."""
    task = chores.adopt(app, chores.tell, max_attempts=1)
    chores.note(str(tmp_path), "crash")
    with working(app, processes=1):
        handle = task.enqueue(str(tmp_path))
        until(lambda: handle.record().log, "the first line")
        chores.note(str(tmp_path), "go")
        record = handle.wait(LONG)
    assert record.state is State.DISCARDED
    assert record.progress is not None
    assert lines(record) == ["half-way"]


def test_failed_attempts(app: Rota) -> None:
    """Each attempt adds its lines; the progress is that of the newest one that told any."""

    @app.task(name="fail", retry=lambda _number, _error: 0.0, max_attempts=3)
    def fail(ctx: Context) -> None:
        ctx.log(f"attempt {ctx.attempt}")
        if ctx.attempt < 3:
            ctx.progress(ctx.attempt / 10)
        raise ValueError

    with working(app):
        record = fail.enqueue().wait(LONG)
    assert record.state is State.DISCARDED
    assert [(one.attempt, one.message) for one in record.log] == [
        (1, "attempt 1"), (2, "attempt 2"), (3, "attempt 3"),
    ]  # fmt: skip
    assert record.progress is not None
    assert (record.progress.fraction, record.progress.attempt) == (0.2, 2)


def test_a_wrong_fraction_fails_the_attempt(app: Rota) -> None:
    """It is an error of the handler, where it was made."""

    @app.task(name="wrong", max_attempts=1)
    def wrong(ctx: Context) -> None:
        ctx.progress(40)

    with working(app), pytest.raises(JobFailed, match="from 0 to 1, not 40"):
        wrong.enqueue().result(LONG)


def test_a_worker_that_is_killed(app: Rota, tmp_path: Path) -> None:
    """What it told is there until the next attempt tells something, which starts anew."""
    task = chores.adopt(app, chores.tell_file)
    folder = str(tmp_path)
    with WorkerProcess(app.url, session_timeout=1) as victim:
        handle = task.enqueue(folder)
        until(lambda: handle.record().progress, "the first progress")
        victim.signal(signal.SIGKILL)
        victim.ended()
    before = handle.record()
    assert before.progress is not None
    assert (before.progress.fraction, before.progress.attempt) == (0.75, 1)
    assert lines(before) == ["began"]
    with WorkerProcess(app.url, session_timeout=1):
        until(lambda: chores.wait_for(folder, "started-2"), "the next attempt")
        during = handle.record()
        assert (during.state, during.attempt) == (State.RUNNING, 2)
        assert during.progress == before.progress
        chores.note(folder, "go")
        after = handle.wait(LONG)
    assert after.progress is not None
    assert (after.progress.fraction, after.progress.attempt) == (0.25, 2)
    assert lines(after) == ["began", "went on"]


def test_jobs_that_tell_nothing(app: Rota, written: list[list[Note]]) -> None:
    """They cost no statement, no thread and no connection."""

    @app.task(name="quiet")
    def quiet(ctx: Context) -> int:
        return ctx.attempt

    with working(app):
        for handle in [quiet.enqueue() for _ in range(20)]:
            handle.result(LONG)
        assert not any(one.name == "rota-notes" for one in threading.enumerate())
    assert written == []


def test_nothing_is_kept_of_a_job_that_is_not(
    app: Rota, written: list[list[Note]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a retention of 0, what a quick job tells is not even written."""
    monkeypatch.setattr(writing, "PACE", LONG)

    @app.task(name="gone", retention=0)
    async def gone(ctx: Context) -> None:
        ctx.progress(0.5)
        ctx.log("line")

    @app.task(name="kept")
    async def kept(ctx: Context) -> None:
        ctx.log("line")

    with working(app, concurrency=1):
        # The note writer writes the first job's line at once, and then rests for long.
        first = kept.enqueue()
        first.wait(LONG)
        until(lambda: written, "the first line to be written")
        handle = gone.enqueue()
        until(lambda: not app.database.run(app.database.store.get([handle.id])), "it to be gone")
        last = kept.enqueue()
        last.wait(LONG)
    assert {note.job for one in written for note in one} == {first.id, last.id}


def test_a_database_that_is_away(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told meanwhile is written later, and no job is held up that need not be settled."""
    away = threading.Event()
    real = app.database.store.note

    def note(told: list[Note]) -> Any:
        if away.is_set():
            raise StoreUnavailable("away")
        return real(told)

    monkeypatch.setattr(app.database.store, "note", note)

    @app.task(name="tell")
    def tell(ctx: Context) -> None:
        ctx.progress(0.5, "half")
        ctx.log("line")

    away.set()
    with working(app):
        handle = tell.enqueue()
        until(lambda: handle.status is State.RUNNING, "it to run")
        away.clear()
        record = handle.wait(LONG)
    assert record.progress is not None
    assert lines(record) == ["line"]


def test_a_database_that_refuses(
    app: Rota, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Jobs end all the same; what they told is lost, and the worker's log says so."""

    def note(_: list[Note]) -> Any:
        raise StoreError("no room for notes")

    monkeypatch.setattr(app.database.store, "note", note)

    @app.task(name="tell")
    def tell(ctx: Context) -> None:
        ctx.log("line")
        raise Discard("enough")

    with working(app):
        assert tell.enqueue().wait(LONG).state is State.DISCARDED
    assert "no room for notes" in caplog.text


def test_the_last_words_of_a_stopping_worker(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an abandoned handler told just before the end is written."""
    monkeypatch.setattr(writing, "PACE", LONG)
    told = threading.Event()

    @app.task(name="long")
    async def long(ctx: Context) -> None:
        ctx.progress(0.1)
        await asyncio.to_thread(told.wait, LONG)
        ctx.progress(0.2)
        ctx.log("last words")
        told.clear()
        await asyncio.sleep(LONG)

    with working(app, grace=0.0):
        handle = long.enqueue()
        until(lambda: handle.record().progress, "the first progress")
        told.set()
        until(lambda: not told.is_set(), "the last words")
    record = handle.record()
    assert record.state is State.AVAILABLE
    assert record.progress is not None
    assert record.progress.fraction == 0.2
    assert lines(record) == ["last words"]


def test_a_scribe_that_stops(
    app: Rota, written: list[list[Note]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run tells whose settlement nobody writes, such as one in a thread left behind."""
    monkeypatch.setattr(writing, "PACE", LONG)
    with contextlib.closing(app.database.store.connect()) as connection:
        _, [job] = running(app.database.store, connection)
    writer = writing.NoteWriter(app.database.store, app.events)
    ctx = Context(job, notes=writer.notes)
    ctx.log("first")
    until(lambda: written, "the first line to be written")
    ctx.log("last")
    writer.stop()
    assert lines(app.job(job.id).record()) == ["first", "last"]
