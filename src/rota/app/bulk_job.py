"""The job that carries out an action on everything that matches: a task that every worker knows.

How far it has come is in the audit, and moves on in the transactions in which jobs are changed (see
`rota.store.audit`). So it goes on where it was, whatever has died meanwhile.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from rota.app.bulk import KINDS, Bulk
from rota.app.context import Context
from rota.app.matching import matching
from rota.config import DAY
from rota.errors import RotaError
from rota.model.backoff import Backoff
from rota.model.job import JobId, JobSpec, Order
from rota.model.options import LOWEST
from rota.outcome import Discard
from rota.store.audit import Place

if TYPE_CHECKING:
    from rota.app.app import Rota

NAME = "rota.bulk"
"""Of the task."""

ATTEMPTS = 25
TIMEOUT = float(DAY)
"""Seconds. What is set for its queue is meant for other jobs."""


class Overtaken(RotaError):
    """Another run of the job has gone on, since this one was taken for dead."""


def declare(app: "Rota") -> None:
    """Let an app have the task, unless it has."""
    if NAME in app.tasks:
        return

    @app.task(name=NAME, retry=Backoff(first=1.0, cap=60.0), retention=DAY)
    def bulk(
        context: Context,
        action: str,
        wanted: dict[str, str],
        until: int,
        expected: int | None = None,
    ) -> None:
        """Act on everything that matches, from where an earlier attempt ended."""
        kind, found_by = KINDS[action], matching(wanted)
        steps = Bulk(app, kind, found_by, JobId(until), besides=context.job_id)
        _carry_out(app, context, steps, expected)


def order(
    queue: str, action: str, wanted: Mapping[str, str], until: JobId, expected: int | None
) -> Order:
    """An order for one job: before all others of its queue.

    It acts on jobs up to `until`. How many that will be is `expected`, if it is known.
    """
    spec = JobSpec(task=NAME, queue=queue, priority=LOWEST, max_attempts=ATTEMPTS, timeout=TIMEOUT)
    args = {"action": action, "wanted": wanted, "until": until, "expected": expected}
    return Order(spec.at_enqueue(), [msgspec.json.encode(args).decode()], None)


def _carry_out(app: "Rota", context: Context, bulk: Bulk, expected: int | None) -> None:
    audit, run = app.database.store.audit, app.database.run
    place = run(audit.find(context.job_id))
    if place is None:
        message = "the audit no longer has its entry, so how far it had come is not known"
        raise Discard(message)
    changed, left = place.changed, 0
    # What an attempt before this one has left is not known.
    some = "at least " if place.position else ""
    for page in bulk.pages(place.position):
        if context.cancelled:
            return
        if page.jobs:
            step = run(audit.step(place, page.position, bulk.act(page)))
            if step is None:
                message = "another run of this job has taken over"
                raise Overtaken(message)
            changed += step
            left += len(bulk.left(page, step))
            place = Place(place.deed, page.position, changed)
        share = page.share if expected is None else changed / max(expected, 1)
        said = f"{changed:,} changed" + (f", {some}{left:,} left to their flows" if left else "")
        context.progress(min(share, 1.0), said)
