"""NATS JetStream: messages are there at least once, and exactly once in its window for duplicates.

A batch is published without a pause, and then the stream's acknowledgements are awaited. The job's
id is the message's `Nats-Msg-Id`: within its window (two minutes, unless the stream says otherwise)
the stream drops what it has already.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from rota.errors import ConfigError
from rota.model.job import JobId
from rota.relay.message import Message, MessageRefused, headers_of
from rota.relay.target import IDLE, Unsettled, check_timeout, missing

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

SCHEMES = ("nats://", "tls://", "ws://", "wss://")

TOO_LARGE = 10054
"""The server's number for a message that the stream will never take."""

NOBODY = "503"
"""The status of a message that nobody listens to."""


class StreamRefused(Exception):
    """The stream did not take a message, or there is none."""


class _Error(msgspec.Struct):
    description: str = ""
    err_code: int = 0


class _Answer(msgspec.Struct):
    error: _Error | None = None


_read = msgspec.json.Decoder(_Answer).decode


@dataclass(frozen=True)
class JetStream:
    """A subject of NATS that a stream listens to.

    Args:
        url: `nats://host:4222`, or several servers of a cluster with commas between them.
        subject: The subject of all messages; by default `outbox.event.` and the relay's name.
        credentials: A file with the user's credentials.
        timeout: Seconds that the server may take for one batch.

    Raises:
        ConfigError: A value cannot be used.
    """

    url: str
    subject: str | None = None
    credentials: str | None = None
    timeout: float = 10.0

    def __post_init__(self) -> None:
        for url in self.url.split(","):
            if not url.strip().startswith(SCHEMES):
                message = f"JetStream: must be a URL such as nats://host:4222, not {url.partition('@')[2] or url!r}"
                raise ConfigError(message)
        subject = self.subject
        if subject is not None and (not subject or set(subject) & set(" \t\r\n*>")):
            message = (
                f"JetStream: subject: must be a name without spaces or wildcards, not {subject!r}"
            )
            raise ConfigError(message)
        check_timeout(self.timeout, "JetStream")

    def open(self, relay: str, unsettled: Unsettled) -> "JetStreamSender":
        """What publishes on the subject.

        Raises:
            ConfigError: The client is not installed.
        """
        del unsettled  # the stream knows what was sent
        try:
            import nats  # noqa: F401 - looks whether it is there
        except ImportError as error:
            raise missing("nats", error) from error
        return JetStreamSender(self, self.subject or f"outbox.event.{relay}")


class JetStreamSender:
    """Publishes messages, and waits until the stream has them.

    Its loop runs while it sends: a connection that was not used for a while has not answered the
    server's pings, and another one is opened.
    """

    def __init__(self, target: JetStream, subject: str) -> None:
        self._target = target
        self._subject = subject
        self._runner: asyncio.Runner | None = None
        self._connection: Client | None = None
        self._inbox = ""
        self._awaited: dict[JobId, asyncio.Future[_Answer]] = {}
        self._used = 0.0

    def prepare(self) -> None:
        """Connect, unless there is a connection that was used lately."""
        if self._connection is not None and time.monotonic() - self._used > IDLE:
            self.close()
        if self._connection is None:
            self._runner = self._runner or asyncio.Runner()
            self._runner.run(self._connect())

    def send(self, messages: Sequence[Message]) -> Mapping[JobId, Exception]:
        """Publish them, and wait until the stream has all."""
        assert self._runner is not None  # noqa: S101 - `prepare` comes before
        refused = self._runner.run(self._send(messages))
        self._used = time.monotonic()
        return refused

    def close(self) -> None:
        """End the connection."""
        runner, self._runner = self._runner, None
        connection, self._connection = self._connection, None
        if runner is not None:
            if connection is not None:
                runner.run(_left(connection))
            runner.close()

    async def _connect(self) -> None:
        import nats

        self._connection = connection = await nats.connect(
            [url.strip() for url in self._target.url.split(",")],
            user_credentials=self._target.credentials,
            connect_timeout=max(1, int(self._target.timeout)),
            # The relay does it, with all that belongs to it.
            allow_reconnect=False,
            error_cb=_say_nothing,
        )
        self._inbox = connection.new_inbox()
        await connection.subscribe(f"{self._inbox}.*", cb=self._hear)
        self._used = time.monotonic()

    async def _send(self, messages: Sequence[Message]) -> Mapping[JobId, Exception]:
        connection = self._connection
        assert connection is not None  # noqa: S101 - `prepare` comes before
        refused: dict[JobId, Exception] = {}
        self._awaited = {}
        async with asyncio.timeout(self._target.timeout):
            for message in messages:
                try:
                    headers = _headers(message, connection.max_payload)
                except MessageRefused as error:
                    refused[message.id] = error
                    continue
                self._awaited[message.id] = asyncio.get_running_loop().create_future()
                reply = f"{self._inbox}.{message.id}"
                await connection.publish(self._subject, message.payload, reply, headers)
            for job, awaited in self._awaited.items():
                answer = await awaited
                if answer.error is None:
                    continue
                if answer.error.err_code != TOO_LARGE:
                    raise StreamRefused(answer.error.description)
                refused[job] = MessageRefused(answer.error.description)
        return refused

    async def _hear(self, answer: "Msg") -> None:
        """What the stream says of a message."""
        awaited = self._awaited.get(JobId(int(answer.subject.rpartition(".")[2])))
        if awaited is None or awaited.done():
            return
        if answer.headers and answer.headers.get("Status") == NOBODY:
            error = _Error(f"no stream listens to the subject {self._subject!r}")
            awaited.set_result(_Answer(error))
        else:
            awaited.set_result(_read(answer.data))


def _headers(message: Message, most: int) -> dict[str, str]:
    """The headers that a message is published with.

    Raises:
        MessageRefused: NATS cannot carry them, or the message is larger than the server allows.
    """
    headers = {**headers_of(message), "Nats-Msg-Id": str(message.id)}
    for name, text in headers.items():
        if set(name + text) & {"\r", "\n"} or ":" in name:
            reason = (
                f"NATS cannot carry this header: {name!r} has a line break, or a colon in its name"
            )
            raise MessageRefused(reason)
    size = len(message.payload) + sum(
        len(f"{name}: {text}\r\n".encode()) for name, text in headers.items()
    )
    if size + len("NATS/1.0\r\n\r\n") > most:
        reason = (
            f"the message has {size} bytes with its headers, and the server takes at most {most}"
        )
        raise MessageRefused(reason)
    return headers


async def _left(connection: "Client") -> None:
    """End a connection; whether its server still answers or not."""
    import contextlib

    with contextlib.suppress(Exception):
        async with asyncio.timeout(1.0):
            await connection.close()


async def _say_nothing(error: Exception) -> None:
    """The relay tells of errors itself."""
