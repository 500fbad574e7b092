"""What handlers told of their runs: appended, read, and moved along with their jobs.

Notes lie in two tables that turn, and the newest of a job count. When a table that was left is
emptied (`rings.empty_slot`), what still counts is copied: to the other table, or, of jobs that
have finished meanwhile, to the segment of `rota.finished_note` that will be truncated with the
job's own. So settling a job costs nothing for its notes, and nothing dies but by TRUNCATE.

Whether the run still holds its lease is not checked: what a run says that has lost it lies before
all that its successor says, in the order of leases.
"""

from collections.abc import Sequence
from time import monotonic

from rota.model.job import JobId
from rota.model.notes import LINES, LOG_CHARACTERS, Note, ToldNote
from rota.store.operation import Begin, Query, Rows, Steps, Together, operation
from rota.store.postgres.statements import sql

NOTE = sql("notes/note")
NOTES = sql("notes/notes")

BOUNDS = {"most": LINES, "characters": LOG_CHARACTERS}
"""How many lines of a job are kept, for `note_copy_forward.sql`."""


def note(told: Sequence[Note]) -> Together[None]:
    """Append notes. A crash of the server may take the last ones back."""
    now = monotonic()
    params = {
        "jobs": [note.job for note in told],
        "leases": [note.lease for note in told],
        "attempts": [note.attempt for note in told],
        "lines": [note.line for note in told],
        "numbers": [note.number for note in told],
        "ages": [max(0.0, now - note.said) for note in told],
        "fractions": [note.fraction for note in told],
        "levels": [note.level for note in told],
        "texts": [note.text for note in told],
    }
    return Together("note", (Query(NOTE, params),), _nothing)


def _nothing(_: Sequence[Rows]) -> None:
    """Ignore the number of notes, which the caller knows."""


@operation(Begin.READING)
def notes(jobs: Sequence[JobId]) -> Steps[dict[JobId, list[ToldNote]]]:
    """What is known of these jobs' runs, by job."""
    told: dict[JobId, list[ToldNote]] = {}
    for job, *rest in (yield NOTES(jobs=list(jobs), most=LINES)):
        told.setdefault(job, []).append(ToldNote(*rest))
    return told
