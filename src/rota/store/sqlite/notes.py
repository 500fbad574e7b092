"""What handlers told of their runs: kept as far as it counts, and forgotten with the job."""

from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic

from rota.model.job import JobId
from rota.model.notes import LINES, LOG_CHARACTERS, Note, ToldNote
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.statements import json_list, sql

NOTE = sql("notes/note")
NOTE_TRIM = sql("notes/note_trim")
NOTES = sql("notes/notes")


@operation(Begin.HASTY)
def note(told: Sequence[Note]) -> Steps[None]:
    """Keep what handlers told."""
    now = monotonic()
    rows = [
        [note.job, note.lease, note.attempt, int(note.line), note.number,
         max(0.0, now - note.said), note.fraction, note.level, note.text]
        for note in told
    ]  # fmt: skip
    yield NOTE(told=json_list(rows))
    jobs = json_list(list({note.job for note in told}))
    yield NOTE_TRIM(jobs=jobs, most=LINES, characters=LOG_CHARACTERS)


@operation(Begin.NOTHING)
def notes(jobs: Sequence[JobId]) -> Steps[dict[JobId, list[ToldNote]]]:
    """What is known of these jobs' runs, by job."""
    told: dict[JobId, list[ToldNote]] = {}
    for job, line, lease, number, attempt, at, *rest in (yield NOTES(jobs=json_list(jobs))):
        moment = datetime.fromtimestamp(at, UTC)
        told.setdefault(job, []).append(ToldNote(bool(line), lease, number, attempt, moment, *rest))
    return told
