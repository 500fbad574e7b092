"""Relays: tasks whose jobs no handler runs, because a worker sends them to a target.

A relay has a queue of its own, of its name. The worker that serves it sends its jobs in log order,
a batch after the other (`rota.store.relaying`).
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rota.app.task import Task
from rota.errors import ConfigError
from rota.model.backoff import MOST_ATTEMPTS, Backoff
from rota.model.durations import seconds
from rota.model.options import JobOptions, check_name
from rota.relay.message import message
from rota.relay.target import Target

if TYPE_CHECKING:
    from rota.app.enqueuing import Enqueuing
    from rota.app.handle import JobHandle

LARGEST = 10_000
"""Jobs that may be sent at once."""

CHANGES = {"delay", "at", "wake", "headers"}
"""What `using` can change for jobs that stay in their order."""


class Relay(Task[[str, str, Any], None, None]):
    """A task whose jobs are sent to a target, in their order. Made by `Rota.relay`.

    Attributes:
        target: Where its jobs are sent.
        batch: How many are sent at once at most.
    """

    def __init__(
        self,
        enqueuing: "Enqueuing",
        name: str,
        target: Target,
        *,
        batch: int,
        retention: float | timedelta,
    ) -> None:
        if not callable(getattr(target, "open", None)):
            text = (
                f"relay {name!r}: to: must be a target such as rota.relay.RedisStream(…), not "
                f"{type(target).__name__}"
            )
            raise ConfigError(text)
        if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= LARGEST:
            text = f"relay {name!r}: batch: must be a whole number between 1 and {LARGEST}, not {batch!r}"
            raise ConfigError(text)
        self.target = target
        self.batch = batch
        super().__init__(
            enqueuing,
            message,
            name=check_name(name, "task"),
            # An attempt is spent where a worker dies, on SQLite, which is no fault of a message.
            options=JobOptions(queue=check_name(name, "queue"), max_attempts=MOST_ATTEMPTS),
            retry=Backoff(),
            executor=None,
            retention=seconds(retention, "retention"),
            store_result=False,
        )

    if TYPE_CHECKING:
        # With the names, which the list of types above cannot have.
        def enqueue(
            self,
            aggregateid: str,
            type: str,  # noqa: A002 - Debezium's name
            payload: Any,
            *,
            conn: object = None,
        ) -> JobHandle[None]:
            """Store one message; it is there if the transaction commits.

            Args:
                aggregateid: What it is about, such as an order's number.
                type: What happened.
                payload: Any JSON value.
                conn: Your connection or session, whose transaction it joins; else it has one of
                    Rota's own.

            Raises:
                ArgsError: The payload cannot be stored as JSON, or is too large.
                ConfigError: `conn` cannot be used.
                StoreUnavailable: The database cannot be reached.
            """

        async def aenqueue(
            self,
            aggregateid: str,
            type: str,  # noqa: A002 - Debezium's name
            payload: Any,
            *,
            conn: object = None,
        ) -> JobHandle[None]:
            """The same, without blocking the event loop."""

    @property
    def queue(self) -> str:
        """The queue of its jobs, and of no others."""
        return self.options.queue

    def _check_changes(self, changes: Mapping[str, object]) -> None:
        if unusable := sorted(changes.keys() - CHANGES):
            text = (
                f"relay {self.name!r}: {unusable[0]} would change the order of its jobs or has no meaning for them; "
                f"using() takes {', '.join(sorted(CHANGES))} and conn here"
            )
            raise ConfigError(text)
