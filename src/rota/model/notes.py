"""What handlers tell of their runs: progress, and log lines.

A handler may call as often as it likes. A call changes a value in memory; the owner of the `Notes`
(a worker, or a child process) takes what there is about once a second. Of progress only the newest
counts. Lines have the same bounds at each step of their way: the newest `LINES` of a job, each of
at most `LINE_CHARACTERS`, together at most `LOG_CHARACTERS`. They are numbered, so that a reader
can say how many are missing.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from math import isfinite
from typing import NamedTuple

from rota.errors import ConfigError
from rota.model.job import ClaimedJob, JobId, JobRecord, LeaseId, LogLine, Progress

LINES = 100
"""So many lines are kept of a job."""

LINE_CHARACTERS = 1_000
"""So many characters of a line, or of the message of a progress, are kept."""

LOG_CHARACTERS = 16_384
"""So many characters of all lines of a job are kept."""

DROPPED = "dropped"
"""The level of a line that says how many are missing."""


class Note(NamedTuple):
    """One thing that a run has told: a line, or (`line` is false) its progress.

    `number` counts the lines, or the progresses, of the run; `said` is when, on the monotonic
    clock.
    """

    job: JobId
    lease: LeaseId
    attempt: int
    line: bool
    number: int
    said: float
    fraction: float | None
    level: str | None
    text: str


class ToldNote(NamedTuple):
    """A note as a store gives it back."""

    line: bool
    lease: LeaseId
    number: int
    attempt: int
    at: datetime
    fraction: float | None
    level: str | None
    text: str


class Notes:
    """All notes that were told and not yet taken. Handlers use it from any thread.

    `news` is called when something was told after everything had been taken.
    """

    def __init__(self, news: Callable[[], None]) -> None:
        self.lock = threading.Lock()
        self._news = news
        self._untaken: dict[tuple[JobId, LeaseId], RunNotes] = {}

    def told(self, run: "RunNotes") -> None:
        """A run has something that should be taken. Called with the lock held."""
        if not self._untaken:
            self._news()
        self._untaken[run.key] = run

    def moved(self, job: JobId, old: LeaseId, new: LeaseId) -> None:
        """A run that has ended is settled under another lease: what it told is taken by that name."""
        with self.lock:
            run = self._untaken.pop((job, old), None)
            if run is not None:
                self._untaken[job, new] = run

    def take(self, runs: Iterable[tuple[JobId, LeaseId]] | None = None) -> list[Note]:
        """Take what these runs have told, or all runs."""
        with self.lock:
            if not self._untaken:
                return []
            wanted = list(self._untaken) if runs is None else runs
            found = [self._untaken.pop(key) for key in wanted if key in self._untaken]
            return [note for run in found for note in run.drain()]


class RunNotes:
    """What one run has told."""

    __slots__ = ("_attempt", "_calls", "_count", "_lines", "_newest", "_notes", "key")

    def __init__(self, job: ClaimedJob, notes: Notes | None) -> None:
        self.key = job.id, job.lease
        self._attempt = job.attempt
        self._notes = notes
        self._newest: Note | None = None
        self._calls = 0
        self._lines: deque[Note] = deque(maxlen=LINES)
        self._count = 0

    def progress(self, fraction: float, message: str) -> None:
        """Note how far the run is; see `Context.progress`."""
        check_fraction(fraction)
        if not isinstance(message, str):
            problem = f"progress: the message must be a text, not {type(message).__name__}"
            raise ConfigError(problem)
        if (notes := self._notes) is None:
            return
        with notes.lock:
            self._calls += 1
            self._newest = Note(
                *self.key, self._attempt, False, self._calls, time.monotonic(), float(fraction),
                None, storable(message),
            )  # fmt: skip
            notes.told(self)

    def line(self, level: str, message: object) -> None:
        """Note a line."""
        if (notes := self._notes) is None:
            return
        text = storable(str(message))
        with notes.lock:
            self._count += 1
            self._lines.append(
                Note(
                    *self.key, self._attempt, True, self._count, time.monotonic(), None, level, text
                )
            )
            notes.told(self)

    def absorb(self, told: Iterable[Note]) -> None:
        """Note what a child process has taken."""
        if (notes := self._notes) is None:
            return
        with notes.lock:
            for note in told:
                if note.line:
                    self._lines.append(note)
                else:
                    self._newest = note
            notes.told(self)

    def drain(self) -> list[Note]:
        """What was told since the last time. Called with the lock held."""
        newest, self._newest = self._newest, None
        lines, self._lines = self._lines, deque(maxlen=LINES)
        return [*lines] if newest is None else [newest, *lines]


class JobLog:
    """Writes lines that are kept with the job. Calling it is the same as `info`."""

    __slots__ = ("_run",)

    def __init__(self, run: RunNotes) -> None:
        self._run = run

    def __call__(self, message: object) -> None:
        """Write a line."""
        self._run.line("info", message)

    def debug(self, message: object) -> None:
        """Write a line that matters to a close look only."""
        self._run.line("debug", message)

    def info(self, message: object) -> None:
        """Write a line."""
        self._run.line("info", message)

    def warning(self, message: object) -> None:
        """Write a line about something that is not as it should be."""
        self._run.line("warning", message)

    def error(self, message: object) -> None:
        """Write a line about something that went wrong."""
        self._run.line("error", message)


def check_fraction(fraction: object) -> None:
    """Check that a fraction lies between 0 and 1.

    Raises:
        ConfigError: It is not a number from 0 to 1.
    """
    if (
        isinstance(fraction, bool)
        or not isinstance(fraction, (int, float))
        or not isfinite(fraction)
        or not 0 <= fraction <= 1
    ):
        problem = (
            f"progress: must be a number from 0 to 1, not {fraction!r}; "
            "for a count write done / total"
        )
        raise ConfigError(problem)


def storable(text: str) -> str:
    """The text as it is kept: shortened, and with what no database can store made visible."""
    if len(text) > LINE_CHARACTERS:
        text = text[: LINE_CHARACTERS - 1] + "…"
    if "\0" in text:
        text = text.replace("\0", "\\0")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def with_notes(record: JobRecord, told: Sequence[ToldNote]) -> JobRecord:
    """The record of a job, with what its handler told."""
    if not told:
        return record
    progress = max((note for note in told if not note.line), key=_age, default=None)
    return replace(
        record,
        progress=None
        if progress is None
        else Progress(progress.fraction or 0.0, progress.text, progress.attempt, progress.at),
        log=_log(note for note in told if note.line),
    )


def _age(note: ToldNote) -> tuple[LeaseId, int]:
    """Which run of the job, and which note of it: what is told later is greater."""
    return note.lease, note.number


def _log(lines: Iterable[ToldNote]) -> tuple[LogLine, ...]:
    """The lines that are kept, in their order; where some are missing, a line says how many."""
    # A line that was sent again after a lost connection may be there twice.
    known = {_age(note): note for note in lines}
    kept: deque[ToldNote] = deque()
    characters = 0
    for age in sorted(known, reverse=True):
        characters += len(known[age].text)
        if len(kept) == LINES or characters > LOG_CHARACTERS:
            break
        kept.appendleft(known[age])
    log: list[LogLine] = []
    before: tuple[LeaseId | None, int] = (None, 0)
    for note in kept:
        number = before[1] if note.lease == before[0] else 0
        if missing := note.number - number - 1:
            said = f"{missing} lines are not kept" if missing > 1 else "1 line is not kept"
            log.append(LogLine(note.at, DROPPED, said, note.attempt, note.lease, note.number - 1))
        log.append(
            LogLine(note.at, note.level or "", note.text, note.attempt, note.lease, note.number)
        )
        before = note.lease, note.number
    return tuple(log)
