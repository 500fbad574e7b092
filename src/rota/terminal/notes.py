"""What a list says of a job, beside its state."""

from rota.model.job import JobRecord
from rota.model.memory import due
from rota.model.states import State
from rota.terminal.tables import shortened

WITHOUT_END = "waits for a signal or other jobs"
"""Of a scheduled job without a due time. Which of the two it waits for would take another statement."""


def note(job: JobRecord, longest: int) -> str:
    """Its worker, its last error in so many characters, or that it waits without an end."""
    match job.state:
        case State.RUNNING:
            where = f"on {job.worker}" if job.worker else ""
            return f"{where}, asked to stop".removeprefix(", ") if job.cancel_requested else where
        case State.SCHEDULED if due(job) is None:
            return WITHOUT_END
        case State.RETRYABLE | State.DISCARDED if job.errors:
            last = job.errors[-1]
            name = last.exception.removeprefix("builtins.")
            return shortened(" ".join(f"{name}: {last.message}".split()), longest)
    return ""
