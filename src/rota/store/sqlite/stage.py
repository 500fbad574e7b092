"""Due jobs become available."""

from rota.job import Staging
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.statements import sql

STAGE = sql("stage")
STAGE_NEXT = sql("stage_next")


@operation(Begin.HASTY)
def stage(limit: int) -> Steps[Staging]:
    """Make due jobs available, in the order of their time, at most `limit` of them."""
    staged = yield STAGE(size=max(limit, 0))
    [(seconds,)] = yield STAGE_NEXT()
    return Staging(len(staged), None if seconds is None else max(seconds, 0.0))
