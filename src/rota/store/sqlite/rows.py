"""From SQLite's rows to Rota's values: moments are seconds since 1970, lists are JSON."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from rota.model.headers import decoded
from rota.model.job import AttemptError, ClaimedJob, JobRecord
from rota.model.states import State

_errors = msgspec.json.Decoder(tuple[AttemptError, ...])
_datetime = datetime.fromtimestamp

claimed_jobs = msgspec.json.Decoder(list[ClaimedJob]).decode
"""Read the JSON arrays of `claim_rows.sql`."""


def job_record(row: tuple[Any, ...]) -> JobRecord:
    """A row of `get.sql`."""
    return JobRecord(
        id=row[0],
        task=row[1],
        args=row[2],
        queue=row[3],
        priority=row[4],
        state=State(row[5]),
        attempt=row[6],
        max_attempts=row[7],
        timeout=row[8],
        enqueued_at=_datetime(row[9], UTC),
        scheduled_at=None if row[10] is None else _datetime(row[10], UTC),
        finished_at=None if row[11] is None else _datetime(row[11], UTC),
        result=row[12],
        errors=() if row[13] is None else _errors.decode(row[13]),
        worker=row[14],
        cancel_requested=bool(row[15]),
        unique_key=row[16],
        iteration=row[17],
        last_run=None if row[18] is None else _datetime(row[18], UTC),
        headers=decoded(row[19]),
    )
