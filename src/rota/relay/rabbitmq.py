"""RabbitMQ, by AMQP 0.9.1: each message is there at least once.

A batch is published without a pause, and then its confirms are awaited: by them the broker says
that it has each message. A message that no queue would get is returned, and the batch has failed.

Known weakness: the broker knows nothing of what was sent before. A batch that was sent and not
settled is sent again; consumers know its messages by their `message_id`.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from rota.errors import ConfigError
from rota.model.job import JobId
from rota.relay.message import Message, MessageRefused, headers_of
from rota.relay.target import IDLE, Unsettled, check_timeout, missing

if TYPE_CHECKING:
    import amqp

PORTS = {"amqp": 5672, "amqps": 5671}

LONGEST = 255
"""Bytes that AMQP has for a message's type and for the name of a header."""


class MessageNotConfirmed(Exception):
    """The broker has said of a message that it does not have it."""


@dataclass(frozen=True)
class RabbitMQ:
    """An exchange of a RabbitMQ broker.

    Args:
        url: `amqp://user:password@host:5672/vhost`, or `amqps://…`.
        exchange: The exchange, which must exist; without one, the default exchange, which leads to
            the queue named by the routing key.
        routing_key: The routing key of all messages; by default `outbox.event.` and the relay's
            name.
        timeout: Seconds that the broker may take for one batch.

    Raises:
        ConfigError: A value cannot be used.
    """

    url: str
    exchange: str = ""
    routing_key: str | None = None
    timeout: float = 10.0

    def __post_init__(self) -> None:
        scheme = urlsplit(self.url).scheme
        if scheme not in PORTS:
            message = f"RabbitMQ: must be a URL such as amqp://user:password@host:5672/, not one that begins with {scheme!r}"
            raise ConfigError(message)
        check_timeout(self.timeout, "RabbitMQ")

    def open(self, relay: str, unsettled: Unsettled) -> "RabbitMQSender":
        """What publishes to the exchange.

        Raises:
            ConfigError: The client is not installed.
        """
        del unsettled  # the broker does not remember what was sent
        try:
            import amqp  # noqa: F401 - looks whether it is there
        except ImportError as error:
            raise missing("rabbitmq", error) from error
        return RabbitMQSender(self, self.routing_key or f"outbox.event.{relay}")


class RabbitMQSender:
    """Publishes messages, and waits for their confirms."""

    def __init__(self, target: RabbitMQ, routing_key: str) -> None:
        self._target = target
        self._routing_key = routing_key
        self._connection: amqp.Connection | None = None
        self._channel: Any = None
        self._published = 0
        self._unconfirmed: set[int] = set()
        self._used = 0.0

    def prepare(self) -> None:
        """Connect, unless there is a connection that was used lately."""
        if self._connection is not None and time.monotonic() - self._used > IDLE:
            self.close()
        if self._connection is None:
            self._connect()

    def send(self, messages: Sequence[Message]) -> Mapping[JobId, Exception]:
        """Publish them, and wait until the broker has all.

        Raises:
            MessageNotConfirmed: The broker does not have one of them, such as a queue that is full.
        """
        refused: dict[JobId, Exception] = {}
        deadline = time.monotonic() + self._target.timeout
        for message in messages:
            try:
                self._publish(message)
            except MessageRefused as error:
                refused[message.id] = error
        while self._unconfirmed:
            self._wait(deadline - time.monotonic())
        self._used = time.monotonic()
        return refused

    def close(self) -> None:
        """End the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # Not in order: a broker that is away would be waited for.
            connection.collect()

    def _connect(self) -> None:
        import amqp

        parts, timeout = urlsplit(self._target.url), self._target.timeout
        connection = amqp.Connection(
            host=f"{parts.hostname or 'localhost'}:{parts.port or PORTS[parts.scheme]}",
            userid=unquote(parts.username or "guest"),
            password=unquote(parts.password or "guest"),
            virtual_host=unquote(parts.path[1:]) or "/",
            ssl=_tls(parts.hostname) if parts.scheme == "amqps" else False,
            connect_timeout=timeout,
            read_timeout=timeout,
            write_timeout=timeout,
        )
        connection.connect()
        self._connection, self._used = connection, time.monotonic()
        self._channel = channel = connection.channel()
        channel.confirm_select()
        channel.events["basic_ack"].add(self._confirmed)
        channel.events["basic_nack"].add(_not_confirmed)
        self._published = 0
        self._unconfirmed = set()

    def _publish(self, message: Message) -> None:
        import amqp

        headers = headers_of(message)
        for name in (message.type, *headers):
            if len(name.encode()) > LONGEST:
                text = f"AMQP has {LONGEST} bytes for a type or the name of a header; this is longer: {name[:40]!r}…"
                raise MessageRefused(text)
        carried = amqp.Message(
            message.payload,
            message_id=str(message.id),
            type=message.type,
            content_type="application/json",
            content_encoding="utf-8",
            delivery_mode=2,
            application_headers=headers,
        )
        self._channel.basic_publish(
            carried, exchange=self._target.exchange, routing_key=self._routing_key, mandatory=True
        )
        self._published += 1
        self._unconfirmed.add(self._published)

    def _wait(self, seconds: float) -> None:
        if self._connection is None or seconds <= 0:
            message = "the broker did not confirm all messages in time"
            raise TimeoutError(message)
        self._connection.drain_events(timeout=seconds)

    def _confirmed(self, number: int, multiple: bool) -> None:  # noqa: FBT001 - the client's own call
        if multiple:
            self._unconfirmed = {other for other in self._unconfirmed if other > number}
        else:
            self._unconfirmed.discard(number)


def _not_confirmed(number: int, multiple: bool) -> None:  # noqa: FBT001 - the client's own call
    del multiple
    message = (
        f"the broker does not take message {number}: a queue is full, or its node is in trouble"
    )
    raise MessageNotConfirmed(message)


def _tls(host: str | None) -> dict[str, Any]:
    """How the client asks for TLS with the server's certificate checked."""
    return {"server_hostname": host, "context": {"check_hostname": True}}
