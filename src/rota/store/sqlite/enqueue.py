"""Storing jobs.

The steps run on a caller's connection as well, inside the caller's transaction: they are plain
statements with named parameters. Ids rise in the order of the args and, since SQLite has one
writer at a time, in the order of commits: the log order is the order of ids.
"""

from collections.abc import Iterator, Sequence

from rota.model.job import JobId, JobSpec
from rota.model.states import State
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.counters import added
from rota.store.sqlite.statements import json_list, sql

ENQUEUE = sql("enqueue/enqueue")

CHUNK_JOBS = 5_000
CHUNK_CHARACTERS = 8_000_000
"""What one statement stores at most. One job may be longer."""


@operation(Begin.DURABLE)
def enqueue(spec: JobSpec, args: Sequence[str], *, copy: bool) -> Steps[list[JobId]]:  # noqa: ARG001
    """Store one job per element of `args`; `copy` means nothing to SQLite."""
    if not args:
        return []
    state = State.SCHEDULED if spec.later else State.AVAILABLE
    yield from added({(spec.queue, state.value, None): len(args)})
    options = {
        "task": spec.task,
        "queue": spec.queue,
        "priority": spec.priority,
        "state": state.value,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "attempts_given": spec.attempts_given,
        "timeout_given": spec.timeout_given,
        "delay": spec.delay,
        "at": None if spec.at is None else spec.at.timestamp(),
    }
    jobs: list[JobId] = []
    for chunk in chunks(args):
        rows = yield ENQUEUE(args=json_list(chunk), **options)
        # SQLite promises no order for what RETURNING gives; the ids themselves are in order.
        jobs.extend(sorted(JobId(row[0]) for row in rows))
    return jobs


def chunks(args: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut args into pieces that one statement stores."""
    start = characters = 0
    for end, text in enumerate(args):
        full = end - start == CHUNK_JOBS or characters + len(text) > CHUNK_CHARACTERS
        if full and end > start:
            yield args[start:end]
            start, characters = end, 0
        characters += len(text)
    yield args[start:]
