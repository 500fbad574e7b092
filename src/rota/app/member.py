"""What a job's end says to its flow: its result, for those that are given it, and what it adds."""

from typing import TYPE_CHECKING, Any

from rota.app.task import Task
from rota.model.flow import wanted
from rota.model.job import ClaimedJob
from rota.model.settlement import Settlement
from rota.model.states import Move

if TYPE_CHECKING:
    from rota.model.flow import Graft


def as_member(
    settlement: Settlement,
    job: ClaimedJob,
    task: Task[..., Any, Any],
    value: object,
    graft: "Graft | None" = None,
    *,
    encoded: bool = False,
) -> Settlement:
    """A settlement with both, if the job is completed; `encoded`: the value is JSON text already.

    Raises:
        ArgsError: The result cannot be stored, or is larger than 1 MB.
    """
    if settlement.node is None or settlement.move is not Move.COMPLETE:
        return settlement
    if wanted(job.headers):
        from rota.app.job_steps import within  # here: few jobs give others their results

        if encoded:
            given = value if isinstance(value, str) else "null"
        else:
            given = settlement.result or task.given_codec.encode(value)
        settlement = settlement._replace(given=within(given, "what others are given"))
    return settlement if graft is None else settlement._replace(graft=graft)
