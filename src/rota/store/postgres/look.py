"""What there is to do, in one statement: an idle worker asks for nothing else, once a second."""

from collections.abc import Sequence

from rota.job import Look
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.segments import CURSOR_SIZE, LOG_SIZE
from rota.store.postgres.statements import sql

LOOK = sql("look")


@operation(Begin.READING)
def look(queues: Sequence[str]) -> Steps[Look]:
    """Whether there is something to claim, stage, rescue or tidy."""
    [row] = yield LOOK(queues=list(queues), log_size=LOG_SIZE, cursor_size=CURSOR_SIZE)
    return Look(*row)
