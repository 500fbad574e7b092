"""Celery's tasks as a target, to move an application stepwise: each message is there at least once.

A message is a call of the task that its `type` names: a payload that is a list has the positional
arguments, one that is an object those by name. The job's id is the id of Celery's task.

Known weakness: the broker knows nothing of what was sent before, and Celery runs what it is sent
twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rota.errors import ConfigError
from rota.model.job import JobId
from rota.relay.message import Message, MessageRefused
from rota.relay.target import Unsettled, check_timeout

AMQP = {"amqp", "amqps", "pyamqp"}

_read = msgspec.json.Decoder().decode


@dataclass(frozen=True)
class CeleryTasks:
    """The tasks of a Celery application.

    Args:
        app: The application, whose broker and routes are used.
        queue: The queue of Celery; by default as the application routes its tasks.
        timeout: Seconds that the broker may take for one batch.

    Raises:
        ConfigError: A value cannot be used, or the broker would not confirm what it receives.
    """

    app: Any
    queue: str | None = None
    timeout: float = 10.0

    def __post_init__(self) -> None:
        if not callable(getattr(self.app, "send_task", None)):
            message = f"CeleryTasks: must be a celery.Celery, not {type(self.app).__name__}"
            raise ConfigError(message)
        check_timeout(self.timeout, "CeleryTasks")

    def open(self, relay: str, unsettled: Unsettled) -> "CeleryTasksSender":
        """What sends calls.

        Raises:
            ConfigError: The broker would not confirm what it receives.
        """
        del relay, unsettled  # the broker does not remember what was sent
        transport = self.app.connection_for_write().transport_cls
        options = self.app.conf.broker_transport_options or {}
        if transport in AMQP and not options.get("confirm_publish"):
            message = (
                "CeleryTasks: without confirms messages may be lost between Celery and its broker; set "
                'app.conf.broker_transport_options = {"confirm_publish": True}'
            )
            raise ConfigError(message)
        return CeleryTasksSender(self)


class CeleryTasksSender:
    """Sends calls of tasks."""

    def __init__(self, target: CeleryTasks) -> None:
        self._target = target
        self._connection: Any = None
        self._producer: Any = None

    def prepare(self) -> None:
        """Connect, unless there is a connection."""
        if self._connection is None:
            app = self._target.app
            connection = app.connection_for_write(connect_timeout=self._target.timeout)
            self._producer = app.amqp.Producer(connection, auto_declare=False)
            self._connection = connection

    def send(self, messages: Sequence[Message]) -> Mapping[JobId, Exception]:
        """Send one call after the other."""
        refused: dict[JobId, Exception] = {}
        routed = {} if self._target.queue is None else {"queue": self._target.queue}
        for message in messages:
            try:
                args, kwargs = _arguments(message)
            except MessageRefused as error:
                refused[message.id] = error
            else:
                self._target.app.send_task(
                    message.type, args, kwargs, task_id=str(message.id), producer=self._producer,
                    headers=message.headers or None, retry=False, **routed,
                )  # fmt: skip
        return refused

    def close(self) -> None:
        """End the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.collect()


def _arguments(message: Message) -> tuple[list[Any], dict[str, Any]]:
    """What a task is called with.

    Raises:
        MessageRefused: The payload is neither a list nor an object.
    """
    match _read(message.payload):
        case list() as args:
            return args, {}
        case dict() as kwargs:
            return [], kwargs
        case _:
            text = "the payload must be a list of the task's positional arguments, or an object with those by name"
            raise MessageRefused(text)
