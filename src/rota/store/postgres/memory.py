"""What jobs remember, on PostgreSQL: appended, and moved along with the jobs as notes are.

Memory lies in two tables that turn. Before the one that was left is emptied, what counts is copied
to the other table, or, of jobs that have finished meanwhile, to the segment of
`rota.finished_memory` that will be truncated with the job's own (`clearing.py`). So nothing dies
but by TRUNCATE, and a settlement does nothing for it.
"""

from collections.abc import Sequence

from rota.errors import TransactionEnded
from rota.model.job import JobId
from rota.model.memory import Answer, Holder, Kind, Remembered
from rota.model.states import State
from rota.store.operation import Begin, Statement, Steps, operation
from rota.store.postgres.statements import sql

MEMORY = sql("memory/memory")
REMEMBER = sql("memory/remember")
ANSWER = sql("memory/answer")
SIGNAL_ASLEEP = sql("memory/signal_asleep")
SIGNAL = sql("memory/signal")
TAGGED = sql("settle/tagged")
# In the wrong transaction it finds nothing.
REMEMBER_TAGGED = Statement(
    "remember_tagged",
    REMEMBER.text.replace("WHERE ", "WHERE current_setting('rota.tag', true) = 'here' AND ", 1),
)


class PostgresMemory:
    """See `rota.store.memory.Memory`."""

    @staticmethod
    @operation(Begin.READING)
    def load(jobs: Sequence[JobId]) -> Steps[dict[JobId, list[Remembered]]]:
        """What these jobs remember."""
        found: dict[JobId, dict[int, Remembered]] = {}
        for job, number, kind, *rest in (yield MEMORY(jobs=list(jobs))):
            found.setdefault(job, {})[number] = Remembered(number, Kind(kind), *rest)
        return {job: list(rows.values()) for job, rows in found.items()}

    @staticmethod
    @operation(Begin.NOTHING)
    def remember(holder: Holder, name: str, value: str) -> Steps[bool]:
        """Append the result of a step."""
        return bool((yield REMEMBER(**holder._asdict(), name=name, value=value)))

    @staticmethod
    @operation(Begin.DURABLE)
    def remember_tagged(holder: Holder, name: str, value: str, before: int | None) -> Steps[bool]:
        """Append it in the tagged transaction."""
        del before
        if (yield REMEMBER_TAGGED(**holder._asdict(), name=name, value=value)):
            return True
        if not (yield TAGGED())[0][0]:
            raise TransactionEnded
        return False

    @staticmethod
    @operation(Begin.NOTHING)
    def answer(holder: Holder, name: str, signal: str, *, over: bool) -> Steps[Answer | None]:
        """End a wait."""
        rows = yield ANSWER(**holder._asdict(), name=name, signal=signal, over=over)
        return Answer(*rows[0]) if rows else None

    @staticmethod
    @operation(Begin.NOTHING)
    def signal(job: JobId, name: str, value: str, told: str | None) -> Steps[State | None]:
        """Send a signal."""
        signal = {"job": job, "name": name, "value": value, "told": told}
        # Else it is looked for everywhere, as it is by then.
        rows = (yield SIGNAL_ASLEEP(**signal)) or (yield SIGNAL(**signal))
        return State(rows[0][0]) if rows else None


MEMORY_OF_JOBS = PostgresMemory()
"""The operations on memory."""
