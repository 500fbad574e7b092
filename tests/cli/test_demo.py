"""`rota demo`, with real workers."""

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from rota.cli.demo import course
from rota.cli.demo.files import Found, find_files
from rota.cli.demo.report import Report
from rota.cli.demo.takeover import Takeover
from rota.model.job import JobId
from rota.model.states import State
from rota.store.opening import open_store
from tests.cli.calling import answer, finished, read_until, refused, rota, started
from tests.docs.recording import kept, shape
from tests.fixtures.stores import empty_database

FILES = 60

ONE = ("--workers", "1")
"""Where more processes would show nothing."""

SLOW = 32 * 1024 * 1024
"""Bytes of a file that a worker reads for longer than the demo needs to look."""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.large)])
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database."""
    return empty_database(request)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files, some of them in folders inside."""
    folder = tmp_path / "some files"
    for number in range(FILES):
        file = folder / f"part {number % 3}" / f"naïve {number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"file {number}\n" * number)
    return folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the demo's temporary folder."""
    path = tmp_path / "tmp"
    path.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(path))
    return path


def left_over(url: str) -> dict[str, int]:
    """How many jobs there are in the database, by queue."""
    store = open_store(url)
    connection = store.connect()
    records = connection.run(store.queues())
    connection.close()
    store.close()
    return {queue.name: sum(queue.counts.values()) for queue in records}


def test_on_a_database_of_its_own(folder: Path, temporary: Path) -> None:
    """Without a URL it makes a database, checks every file, and leaves nothing behind."""
    result = rota("demo", folder)
    assert result.exit_code == 0, result.output
    assert f"Checksums of {FILES} files" in result.stdout
    assert f"jobs completed: {FILES} of {FILES}" in result.stdout
    assert f"all {FILES} checksums are right" in result.stdout
    assert "\x1b" not in result.stdout
    assert result.stderr == ""
    assert not list(temporary.iterdir())


def test_json(store_url: str, folder: Path) -> None:
    """`--json` prints one object; afterwards the database has none of the demo's jobs."""
    told = answer("demo", folder, "--workers", "1", url=store_url)
    assert told["ok"] is True
    assert (told["jobs"], told["workers"], told["killed"]) == (FILES, 1, None)
    assert told["states"] == {"completed": FILES}
    assert told["attempts"] == {"1": FILES}
    assert told["wrong"] == []
    assert told["bytes"] == sum(file.stat().st_size for file in folder.rglob("*.txt"))
    assert left_over(store_url) == {told["queue"]: 0}


def test_killing_a_worker(store_url: str, folder: Path) -> None:
    """With `--kill` a worker dies while it holds jobs, and the others finish them."""
    slow = folder / "the last part"
    slow.mkdir()
    for number in range(FILES // 3):
        with (slow / f"{number}.txt").open("wb") as file:
            file.truncate(SLOW)
    result = rota("demo", folder, "--kill", "--json", url=store_url)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["ok"] is True
    assert told["killed"]["rescued"] >= 1
    assert told["killed"]["seconds"] >= 1.0
    # Of several jobs none is to blame, and no attempt is spent.
    assert told["attempts"].get("2", 0) == (told["killed"]["rescued"] == 1)
    assert not psutil.pid_exists(told["killed"]["pid"])


def test_what_is_said_about_a_kill(folder: Path) -> None:
    """The text says which worker was killed, and when its jobs were rescued."""
    result = rota("demo", folder, "--kill")
    assert result.exit_code == 0, result.output
    assert "after 2 s without a sign of life" in result.stdout
    if "no worker was caught" not in result.stdout:
        assert "(kill -9)" in result.stdout
        assert "Rescued: " in result.stdout
        # Else record it anew: python -m tests.docs.recording.
        assert {*shape(result.stdout.splitlines())} == {*shape(line for _, line in kept())}


def test_a_file_that_changes(store_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checksum of a file that has changed fails the demo, which names the file."""
    changed = folder / "part 1" / "naïve 1.txt"
    check = course.Course._check

    def change_and_check(self: course.Course) -> None:
        changed.write_text("something else")
        check(self)

    monkeypatch.setattr(course.Course, "_check", change_and_check)
    result = rota("demo", folder, *ONE, url=store_url)
    assert result.exit_code == 1
    assert f"1 of {FILES} checksums are wrong: {changed}" in result.stdout
    told = rota("demo", folder, *ONE, "--json", url=store_url)
    assert told.exit_code == 0, "only the first one saw the file change"


def test_a_job_that_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removed file makes its job fail, and the demo, too."""

    def find(wanted: Path | None) -> Found:
        found = find_files(wanted)
        found.paths.insert(3, str(folder / "gone.txt"))
        return found

    monkeypatch.setattr("rota.cli.demo.files.find_files", find)
    result = rota("demo", folder, *ONE, "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["ok"] is False
    assert told["states"] == {"completed": FILES, "discarded": 1}
    assert told["wrong"] == [str(folder / "gone.txt")]


def test_the_files_that_count(folder: Path) -> None:
    """Only regular files with names that are text are read; links and pipes are left alone."""
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/etc/hostname")
    (folder / "round").symlink_to(folder)
    (folder / "empty").touch()
    os.close(os.open(os.fsencode(folder) + b"/\xff", os.O_CREAT))
    found = find_files(folder)
    assert len(found.paths) == FILES + 1
    assert len(found.skipped) == 1
    result = rota("demo", folder, *ONE)
    assert result.exit_code == 0, result.output
    assert "Skipped 1 unreadable" in result.stdout


def test_the_standard_library_is_the_default() -> None:
    """Without a folder it finds the library's files, and no packages that were installed."""
    found = find_files(None)
    assert any(path.endswith("/this.py") for path in found.paths)
    assert not any("site-packages" in path or "__pycache__" in path for path in found.paths)


def test_a_folder_without_files(tmp_path: Path, temporary: Path) -> None:
    """A folder without files is an error."""
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(rota("demo", empty), 1, "no readable file")
    assert not list(temporary.iterdir())


def test_workers_that_do_not_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the workers cannot run, the demo repeats their message."""
    monkeypatch.setattr("rota.cli.demo.command.SESSION_TIMEOUT", 0.5)
    refused(rota("demo", folder), 1, "worker 1 ended at its start: session_timeout")


def test_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the end is a panel in words."""
    monkeypatch.setattr("rota.cli.demo.telling.on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    result = rota("demo", folder, *ONE)
    assert result.exit_code == 0, result.output
    assert "╭─ Good ─" in result.stdout


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_no_worker_is_left_behind(
    store_url: str, temporary: Path, number: signal.Signals, code: int
) -> None:
    """However the demo ends, its workers do too; stopped in order, it cleans up as well."""
    with started("demo", "--url", store_url, TMPDIR=str(temporary)) as demo:
        read_until(demo.stdout, "jobs completed")
        workers = psutil.Process(demo.pid).children()
        assert len(workers) >= 2
        demo.send_signal(number)
        assert demo.wait(30) == code
        _, alive = psutil.wait_procs(workers, timeout=30)
        assert not alive
    if number != signal.SIGKILL:
        assert not list(temporary.iterdir())
        assert set(left_over(store_url).values()) == {0}


def test_interrupted_after_a_kill(postgres_url: str, temporary: Path) -> None:
    """Jobs of the killed worker are deleted too, once its session is over."""
    with started("demo", "--kill", "--url", postgres_url, TMPDIR=str(temporary)) as demo:
        read_until(demo.stdout, "(kill -9)")
        demo.send_signal(signal.SIGINT)
        assert demo.wait(30) == 130
    assert set(left_over(postgres_url).values()) == {0}


def test_interrupted_while_jobs_are_stored(
    store_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs whose ids the demo never learnt are deleted too."""
    enqueue = course.Course._enqueue

    def enqueue_and_forget(self: course.Course, paths: list[str]) -> None:
        enqueue(self, paths)
        self._ids.clear()
        raise KeyboardInterrupt

    monkeypatch.setattr(course.Course, "_enqueue", enqueue_and_forget)
    assert rota("demo", folder, *ONE, url=store_url).exit_code != 0
    assert set(left_over(store_url).values()) == {0}


def test_other_jobs_are_left_alone(store_url: str, folder: Path) -> None:
    """The demo has a queue of its own and deletes nothing else."""
    store = open_store(store_url)
    connection = store.connect()
    rota("migrate", url=store_url)
    connection.run(store.pause("mail"))
    first = answer("demo", folder, *ONE, url=store_url)["queue"]
    second = answer("demo", folder, *ONE, url=store_url)["queue"]
    assert first != second
    assert set(left_over(store_url)) == {first, second, "mail"}
    connection.close()
    store.close()


def test_as_a_process(folder: Path) -> None:
    """As people run it: exit status 0, and a summary at the end."""
    run = finished("demo", folder, *ONE)
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("Good.\n")


def test_a_report_in_words() -> None:
    """The report says in words how the jobs ended, and which files are wrong."""
    report = Report("/f", "sqlite", "demo-1", 2, 2.0, kill=True, jobs=10, size=2_500_000)
    report.seconds = 2.0
    report.states = {State.COMPLETED.value: 9, State.DISCARDED.value: 1}
    report.attempts = {1: 8, 2: 1, 3: 1}
    report.wrong = [f"/f/{number}\x1b" for number in range(7)]
    words = {subject: (text, good) for subject, text, good in report.words()}
    assert words["jobs"] == ("10, one for each file (2.5 MB)", True)
    assert words["ends"] == ("9 completed, 1 discarded", False)
    assert words["attempts"] == ("8 jobs needed one attempt; 2 needed more", True)
    assert not words["takeover"][1]
    assert "7 of 10 checksums are wrong: /f/0\\x1b, " in words["check"][0]
    assert words["check"][0].endswith(", and 2 more")
    assert not report.good
    report.takeover = Takeover(2, 4711, [JobId(1), JobId(2)], killed_at=0.0, seconds=2.31)
    told = next(text for subject, text, _ in report.words() if subject == "takeover")
    assert told == "worker 2 was killed while it held 2 jobs, rescued 2.3 s later"
