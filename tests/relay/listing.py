"""A target in the test's own process: a list."""

from collections.abc import Callable, Mapping, Sequence

from rota import JobId
from rota.relay.message import Message, MessageRefused
from rota.relay.target import Unsettled


class Listing:
    """A target in this process: a list. `take` is called with each message, and may raise.

    Attributes:
        sent: The messages of each call.
        closed: How often it was closed.
    """

    timeout = 5.0

    def __init__(self, take: Callable[[Message], object] = lambda _: None) -> None:
        self.sent: list[list[Message]] = []
        self.closed = 0
        self._take = take

    def open(self, relay: str, unsettled: Unsettled) -> "Listing":
        """Open nothing."""
        del relay, unsettled
        return self

    def prepare(self) -> None:
        """Prepare nothing."""

    def send(self, messages: Sequence[Message]) -> Mapping[JobId, Exception]:
        """Take the messages; those that are refused for good are left out."""
        refused: dict[JobId, Exception] = {}
        taken = []
        for message in messages:
            try:
                self._take(message)
            except MessageRefused as error:
                refused[message.id] = error
            else:
                taken.append(message)
        self.sent.append(taken)
        return refused

    def close(self) -> None:
        """Count it."""
        self.closed += 1

    @property
    def ids(self) -> list[JobId]:
        """Of all that was sent."""
        return [message.id for batch in self.sent for message in batch]
