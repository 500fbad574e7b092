"""What jobs remember, in a file: one row for each thing, gone with the job."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rota.model.job import JobId
from rota.model.memory import Answer, Holder, Kind, Remembered
from rota.model.states import State
from rota.store.operation import Begin, Steps, Then, operation
from rota.store.sqlite.job_transaction import LEASE_HELD, same_transaction
from rota.store.sqlite.statements import json_list, sql

MEMORY = sql("memory/memory")
REMEMBER = sql("memory/remember")
MAIL = sql("memory/mail")
ANSWER = sql("memory/answer")
ADDRESSED = sql("memory/addressed")
SIGNAL = sql("memory/signal")
DELIVER = sql("memory/deliver")


class SqliteMemory:
    """See `rota.store.memory.Memory`."""

    @staticmethod
    @operation(Begin.NOTHING)
    def load(jobs: Sequence[JobId]) -> Steps[dict[JobId, list[Remembered]]]:
        """What these jobs remember."""
        found: dict[JobId, list[Remembered]] = {}
        for job, number, kind, name, ref, value, at, until, left in (
            yield MEMORY(jobs=json_list(jobs))
        ):
            end = None if until is None else datetime.fromtimestamp(until, UTC)
            row = Remembered(
                number, Kind(kind), name, ref, value, datetime.fromtimestamp(at, UTC), end, left
            )
            found.setdefault(JobId(job), []).append(row)
        return found

    @staticmethod
    @operation(Begin.DURABLE)
    def remember(holder: Holder, name: str, value: str) -> Steps[bool]:
        """Append the result of a step."""
        return bool((yield REMEMBER(**holder._asdict(), name=name, value=value)))

    @staticmethod
    @operation(Begin.DURABLE)
    def remember_tagged(holder: Holder, name: str, value: str, before: int | None) -> Steps[bool]:
        """Append it in the tagged transaction."""
        yield from same_transaction(before)
        return bool((yield REMEMBER(**holder._asdict(), name=name, value=value)))

    @staticmethod
    @operation(Begin.DURABLE)
    def answer(holder: Holder, name: str, signal: str, *, over: bool) -> Steps[Answer | None]:
        """End a wait."""
        if not (yield LEASE_HELD(**holder._asdict())):
            return None
        came = yield MAIL(job=holder.job, signal=signal)
        if not came and not over:
            return Answer(ended=False, signal=None, value=None)
        ref, value = came[0] if came else (None, None)
        yield ANSWER(job=holder.job, name=name, ref=ref, value=value)
        return Answer(ended=True, signal=ref, value=value)

    @staticmethod
    @operation(Begin.DURABLE, then=Then.WORKERS)
    def signal(job: JobId, name: str, value: str, told: str | None) -> Steps[State | None]:
        """Send a signal."""
        rows = yield ADDRESSED(job=job)
        if not rows:
            return None
        state = State(rows[0][0])
        if not state.finished:
            yield SIGNAL(job=job, name=name, value=value, told=told)
            yield DELIVER(jobs=json_list([job]))
        return state


MEMORY_OF_JOBS = SqliteMemory()
"""The operations on memory."""
