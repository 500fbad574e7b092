"""The changes of a job, for a client that looks on."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from rota import JobHandle, JobNotFinished, JobRecord

EVERY = 0.25
"""Seconds between two looks at a job that runs; its end is heard of at once."""


async def changes(job: JobHandle[Any]) -> AsyncIterator[JobRecord]:
    """The job's record now and after each change; the last one is that of the finished job."""
    before = None
    while True:
        record = await job.arecord()
        if (now := (record.state, record.attempt, record.progress)) != before:
            before = now
            yield record
        if record.state.finished:
            return
        with contextlib.suppress(JobNotFinished):
            await job.await_finished(EVERY)
