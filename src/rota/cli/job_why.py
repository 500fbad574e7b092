"""Why jobs do not run, for `rota jobs show`: gathers what `rota.doctor.why` makes reasons of."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rota.doctor.why import Facts, Reason, reasons, waits
from rota.model.flow import Membership
from rota.model.job import JobId, JobRecord
from rota.model.memory import StepRecord

if TYPE_CHECKING:
    from rota import Rota


def whys(
    rota: "Rota",
    jobs: Sequence[JobRecord],
    steps: Mapping[JobId, Sequence[StepRecord]],
    flows: Mapping[JobId, Membership],
) -> dict[JobId, list[Reason]]:
    """Why each of these jobs does not run; those that run or have ended are left out."""
    waiting = [job for job in jobs if waits(job)]
    if not waiting:
        return {}
    store, run = rota.database.store, rota.database.run
    paused = {queue.name for queue in run(store.queues()) if queue.paused}
    workers, lanes = run(store.workers()), run(store.lanes())
    return {
        job.id: reasons(
            Facts(
                job=job,
                now=datetime.now(UTC),
                paused=job.queue in paused,
                workers=workers,
                lanes=lanes,
                standing=run(store.standing(job.id)),
                steps=steps[job.id],
                flow=flows.get(job.id),
            )
        )
        for job in waiting
    }
