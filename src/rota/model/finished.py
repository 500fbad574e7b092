"""What a successor may be given: the job that it follows, as it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rota.model.job import AttemptError
from rota.model.states import State


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that has ended, for the handler of its successor.

    Attributes:
        id: Its id; `rota.job(id)` is a handle on it, as long as it stays readable.
        task: The name of its task.
        queue: Its queue.
        args: Its args, as they are stored: JSON, by parameter name.
        attempt: The number of its last attempt.
        state: `completed` or `discarded`.
        result: Its result as JSON, where its task stores results.
        error: Why its last attempt failed, if it was discarded.
    """

    id: int
    task: str
    queue: str
    args: Mapping[str, Any]
    attempt: int
    state: State
    result: Any = None
    error: AttemptError | None = None
