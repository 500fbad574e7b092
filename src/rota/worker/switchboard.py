"""The switchboard: every message between the worker's threads, by name.

A part sends its messages here and does not know which part receives them. `Parts` connects them
all, in one place, before the first thread starts.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVarTuple

from rota.app.job_transaction import Completion
from rota.errors import RotaError
from rota.model.headers import NodeId
from rota.model.job import ClaimedJob, JobId, SessionId
from rota.model.queue_settings import QueueSettings
from rota.model.settlement import Settlement
from rota.worker.turns import Turns

Message = TypeVarTuple("Message")


class Switchboard:
    """The messages. Each attribute is the receiver's function; call it to send."""

    # To the event loop -----------------------------------------------------------------------

    deliver: Callable[[SessionId, list[ClaimedJob]], None]
    """Claimer to loop: run these jobs, which the session holds."""

    adopt: Callable[[Turns | None], None]
    """Claimer to loop: from now on jobs start by these turns; sent after all that was claimed before."""

    cancel: Callable[[frozenset[JobId]], None]
    """Session to loop: stop these jobs, whose cancelling was requested."""

    lose: Callable[[SessionId], None]
    """Session to loop: the session is lost; stop everything, for other workers run its jobs."""

    learn: Callable[[Mapping[str, QueueSettings]], None]
    """Session to loop: this is what the database says of queues."""

    drain: Callable[[], None]
    """Claimer to the worker: no job is left, neither here nor to claim; stop if that is the end."""

    refuse: Callable[[RotaError], None]
    """Any thread to the worker: the database refuses for good; end with this error."""

    # To the claimer --------------------------------------------------------------------------

    free: Callable[[int], None]
    """Loop to claimer: so many jobs have ended or were dropped; there is room for others."""

    allow: Callable[[int], None]
    """Loop to claimer: so many jobs may be held beyond the concurrency, for batches."""

    share: Callable[[Mapping[str, int]], None]
    """Loop to claimer: so many jobs of these queues may run at once."""

    wake: Callable[[], None]
    """Any thread to claimer: there may be something to claim."""

    settled: Callable[[], None]
    """Any thread to claimer: jobs have been settled, whose leases are not forgotten yet."""

    doubt: Callable[[], None]
    """A handler's thread to claimer: the session may have leases that this worker does not know."""

    claimed: Callable[[], int]
    """Upkeep asks the claimer: how many jobs has it claimed so far?"""

    # To the other threads --------------------------------------------------------------------

    settle: Callable[[Settlement], None]
    """Loop to settler: write this soon."""

    complete: Callable[[ClaimedJob, float, NodeId | None], None]
    """Loop to settler: this job of a flow's node, or of none, has completed, and is kept so long;
    nothing else is to be written of it.
    """

    decide: Callable[[NodeId], None]
    """Loop to settler: a job of this node has ended, which others have written; see what follows."""

    look: Callable[[], None]
    """Session to upkeep: other workers have gone; look around soon."""

    nudge: Callable[[], None]
    """Claimer to upkeep: something was enqueued; look at the timers."""

    leave_in_doubt: Callable[[ClaimedJob, Completion, Settlement], None]
    """Loop to transactions: find out whether this job is completed, else write the settlement."""


def on_loop(
    loop: asyncio.AbstractEventLoop, receive: Callable[[*Message], object]
) -> Callable[[*Message], None]:
    """The same function, called on the event loop; what is sent first is received first."""

    def send(*message: *Message) -> None:
        loop.call_soon_threadsafe(receive, *message)

    return send
