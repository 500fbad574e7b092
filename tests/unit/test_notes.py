"""The notes of runs: what is kept of them in memory, and what a reader gets."""

from datetime import UTC, datetime
from typing import Any

import pytest

from rota import ConfigError, Context, JobRecord, State
from rota.model.job import ClaimedJob, JobId, LeaseId
from rota.model.notes import (
    LINE_CHARACTERS,
    LINES,
    LOG_CHARACTERS,
    Notes,
    RunNotes,
    ToldNote,
    with_notes,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RECORD = JobRecord(
    JobId(1), "shop.send", "{}", "default", 0, State.RUNNING, 2, 5, None, NOW
)  # fmt: skip


def job(number: int = 1, lease: int = 7) -> ClaimedJob:
    return ClaimedJob(
        JobId(number), LeaseId(lease), "shop.send", "{}", "default", 0, 1, 5, None, 0.0
    )


def context() -> tuple[Context, Notes, list[int]]:
    """The context of a run, where its notes go, and how often these had news."""
    news: list[int] = []
    notes = Notes(lambda: news.append(1))
    return Context(job(), notes=notes), notes, news


def line(number: int, text: str = "x", lease: int = 7) -> ToldNote:
    return ToldNote(True, LeaseId(lease), number, lease - 6, NOW, None, "info", text)


def told(number: int, fraction: float, lease: int = 7) -> ToldNote:
    return ToldNote(False, LeaseId(lease), number, lease - 6, NOW, fraction, None, "so far")


def test_the_newest_progress_is_taken() -> None:
    """Of a thousand calls one note is left, and one call for attention."""
    ctx, notes, news = context()
    for step in range(1000):
        ctx.progress(step / 1000, f"step {step}")
    [note] = notes.take()
    assert (note.fraction, note.text, note.number) == (0.999, "step 999", 1000)
    assert news == [1]
    assert notes.take() == []
    ctx.progress(1)
    assert len(news) == 2
    assert [note.number for note in notes.take()] == [1001]


def test_lines_are_bounded_in_memory() -> None:
    """The newest lines are left, each as long as is kept, and numbered."""
    ctx, notes, _ = context()
    for number in range(LINES + 20):
        ctx.log(f"{number} " + "x" * 2000)
    lines = notes.take()
    assert [note.number for note in lines] == list(range(21, LINES + 21))
    assert {len(note.text) for note in lines} == {LINE_CHARACTERS}
    assert all(note.text.endswith("…") for note in lines)


def test_levels() -> None:
    """Calling the log is `info`; whatever is said is made a text that databases can store."""
    ctx, notes, _ = context()
    ctx.log(1)
    ctx.log.debug("two")
    ctx.log.info("three")
    ctx.log.warning("nul \0 and \ud800")
    ctx.log.error(ValueError("five"))
    assert [(note.level, note.text) for note in notes.take()] == [
        ("info", "1"), ("debug", "two"), ("info", "three"),
        ("warning", "nul \\0 and \\ud800"), ("error", "five"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong", [-0.1, 1.001, 40, float("nan"), float("inf"), True, None, "0.4", 0.5j]
)
def test_what_is_no_fraction(wrong: Any) -> None:
    """A value that is not between 0 and 1 is refused in the handler, also in a direct call."""
    ctx, notes, _ = context()
    for either in (ctx, Context(job())):
        with pytest.raises(ConfigError, match="from 0 to 1"):
            either.progress(wrong)
        with pytest.raises(ValueError, match="done / total"):
            either.progress(wrong)
    assert notes.take() == []


def test_a_message_is_a_text() -> None:
    """Any other value was probably meant for another argument, and is refused."""
    ctx, _, _ = context()
    wrong: Any = 3
    with pytest.raises(ConfigError, match="text, not int"):
        ctx.progress(0.5, wrong)


def test_a_direct_call_keeps_nothing() -> None:
    """Without a worker the same calls do nothing."""
    ctx = Context(job())
    ctx.progress(0.5, "half")
    ctx.log("line")
    ctx.log.error("line")


def test_taking_some() -> None:
    """Settling some runs takes their notes, and leaves those of others."""
    notes = Notes(lambda: None)
    for number in (1, 2, 3):
        Context(job(number), notes=notes).progress(0.5)
    wanted = [(JobId(2), LeaseId(7)), (JobId(9), LeaseId(7))]
    assert [note.job for note in notes.take(wanted)] == [2]
    assert sorted(note.job for note in notes.take()) == [1, 3]


def test_what_a_child_took_is_noted_again() -> None:
    """The worker keeps what its child tells under the same bounds."""
    ctx, inner, _ = context()
    outer = Notes(lambda: None)
    run = RunNotes(job(), outer)
    for number in range(3):
        ctx.progress(number / 10)
        for _ in range(60):
            ctx.log(number)
        run.absorb(inner.take())
    progress, *lines = outer.take()
    assert (progress.fraction, progress.number) == (0.2, 3)
    assert [note.number for note in lines] == list(range(81, 181))


def test_a_record_with_notes() -> None:
    """The newest lease counts, whatever the numbers; lines come in their order, each once."""
    record = with_notes(
        RECORD,
        [told(900, 0.9), told(3, 0.2, lease=8), line(2), line(1, lease=8), line(1), line(2)],
    )
    assert record.progress is not None
    assert (record.progress.fraction, record.progress.attempt) == (0.2, 2)
    assert [(found.lease, found.number) for found in record.log] == [(7, 1), (7, 2), (8, 1)]
    assert with_notes(RECORD, []) is RECORD


def test_missing_lines_are_told() -> None:
    """Where numbers are missing a line says how many."""
    record = with_notes(RECORD, [line(4), line(5), line(7), line(1, lease=8)])
    assert [(found.level, found.message) for found in record.log] == [
        ("dropped", "3 lines are not kept"), ("info", "x"), ("info", "x"),
        ("dropped", "1 line is not kept"), ("info", "x"), ("info", "x"),
    ]  # fmt: skip


def test_a_reader_has_the_same_bounds() -> None:
    """The newest lines count, as many and as long as are kept."""
    record = with_notes(RECORD, [line(number) for number in range(1, 301)])
    assert [found.number for found in record.log[1:]] == list(range(201, 301))
    assert record.log[0].message == "200 lines are not kept"
    record = with_notes(RECORD, [line(number, "x" * 1000) for number in range(1, 51)])
    kept = LOG_CHARACTERS // 1000
    assert [found.number for found in record.log[1:]] == list(range(51 - kept, 51))
