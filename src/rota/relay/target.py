"""What a relay needs of the system to which it sends."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from rota.errors import ConfigError
from rota.model.durations import seconds
from rota.model.job import JobId
from rota.relay.message import Message

Unsettled = Callable[[Collection[JobId]], Collection[JobId]]
"""Those of these jobs that have not ended."""


IDLE = 60.0
"""Seconds after which an unused connection is not trusted any more: nobody has looked after it."""


class TakenOver(Exception):
    """Another relay has been at work since this one was, or is.

    Nothing was sent, and there is nothing to tell of.
    """


class Target(Protocol):
    """A system to which messages are sent, as a user describes it."""

    @property
    def timeout(self) -> float:
        """Seconds that sending some messages may take, with all that belongs to it."""
        ...

    def open(self, relay: str, unsettled: Unsettled) -> "Sender":
        """What sends there for this relay; nothing is connected yet.

        Raises:
            ConfigError: The client is not installed.
        """
        ...


class Sender(Protocol):
    """Sends to one target. One thread uses it."""

    def prepare(self) -> None:
        """Called before each `send`, when no other relay is at work.

        The last look that this is so comes afterwards.

        Raises:
            Exception: The target is not there, or refuses.
        """
        ...

    def send(self, messages: Sequence[Message]) -> Mapping[JobId, Exception]:
        """Send the messages in this order, and wait until the target has them.

        Returns those that it will never take.

        The jobs of the call before are settled by then, unless `close` came between.

        Raises:
            Exception: The target is not there, refuses, or was not quick enough; it may have some
                of them.
        """
        ...

    def close(self) -> None:
        """Forget all that is known, and end the connection; the next use opens another one."""
        ...


def missing(extra: str, error: ImportError) -> ConfigError:
    """The error where a client is not installed."""
    return ConfigError(f"this relay needs {error.name}; install rota[{extra}]")


def check_timeout(timeout: float, target: str) -> None:
    """Check how long a target may take.

    Raises:
        ConfigError: It is no number of seconds, or none at all.
    """
    if not seconds(timeout, f"{target}: timeout"):
        message = f"{target}: timeout: must be more than 0 seconds"
        raise ConfigError(message)
