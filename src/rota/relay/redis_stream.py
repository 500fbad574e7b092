"""Redis Streams: each message is there exactly once.

One script appends the entries and writes the relay's position: who sends, and the jobs that were
sent and may come again, because their transaction in the database is not known to have been
committed. So a relay that takes over knows what not to send again. It writes itself in as the one
who sends; from then on the script refuses any other, such as a worker that was frozen in the
middle. A job is known there by its id and the time of its enqueue: a database that was restored, or
has lost its last commits, gives ids a second time.

Known weakness: what Redis forgets (no persistence, a failover that loses writes) is forgotten
together: entries that were acknowledged may be lost, and are not sent again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec

from rota.errors import ConfigError
from rota.model.job import JobId
from rota.relay.message import Message
from rota.relay.target import TakenOver, Unsettled, check_timeout, missing

if TYPE_CHECKING:
    import redis

SCHEMES = {"redis", "rediss", "unix"}

_json = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode


class PositionTaken(TakenOver):
    """Another relay sends to the stream now, or the position is gone: nothing was appended."""


@dataclass(frozen=True)
class RedisStream:
    """A stream of a Redis server: version 5 or later, or what speaks like it.

    Args:
        url: `redis://…`, `rediss://…` or `unix://…`.
        stream: The stream's key; by default `outbox.event.` and the relay's name.
        maxlen: About how many entries the stream keeps; by default all.
        timeout: Seconds that Redis may take for one batch.

    Raises:
        ConfigError: A value cannot be used.
    """

    url: str
    stream: str | None = None
    maxlen: int | None = None
    timeout: float = 10.0

    def __post_init__(self) -> None:
        scheme = urlsplit(self.url).scheme
        if scheme not in SCHEMES:
            message = f"RedisStream: must be a URL such as redis://localhost:6379/0, not one that begins with {scheme!r}"
            raise ConfigError(message)
        maxlen = self.maxlen
        if maxlen is not None and (isinstance(maxlen, bool) or not maxlen >= 1):
            message = f"RedisStream: maxlen: must be a whole number of at least 1, not {maxlen!r}"
            raise ConfigError(message)
        check_timeout(self.timeout, "RedisStream")

    def open(self, relay: str, unsettled: Unsettled) -> "RedisSender":
        """What appends to the stream.

        Raises:
            ConfigError: The client is not installed.
        """
        try:
            import redis
        except ImportError as error:
            raise missing("redis", error) from error
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        client = redis.Redis.from_url(
            self.url,
            socket_timeout=self.timeout,
            socket_connect_timeout=self.timeout,
            # The relay does it, when it has looked what was sent.
            retry=Retry(NoBackoff(), 0),
        )
        return RedisSender(client, self, relay, unsettled)


class RedisSender:
    """Appends to a stream, and keeps the relay's position beside it."""

    def __init__(
        self, client: "redis.Redis", target: RedisStream, relay: str, unsettled: Unsettled
    ) -> None:
        self._client = client
        self._stream = target.stream or f"outbox.event.{relay}"
        # Where keys are spread over servers, the two lie together.
        tagged = self._stream if "{" in self._stream else f"{{{self._stream}}}"
        self.position = f"rota.relay.{relay}:{tagged}"
        self._maxlen = "" if target.maxlen is None else str(target.maxlen)
        self._unsettled = unsettled
        self._holder: str | None = None
        self._batch = 0
        self._doubtful: set[str] = set()
        self._last: frozenset[str] = frozenset()

    @cached_property
    def _script(self) -> Any:
        source = (files("rota.relay") / "send.lua").read_text(encoding="utf-8")
        return self._client.register_script(source)

    def prepare(self) -> None:
        """Take the position over, unless this relay has it, and find out what was sent."""
        if self._holder is not None:
            return
        holder = uuid4().hex
        with self._client.pipeline(transaction=True) as pipeline:
            pipeline.hset(self.position, "holder", holder)
            pipeline.hmget(self.position, ["batch", "sent"])
            _, (batch, sent) = pipeline.execute()
        marks = {mark for mark in (sent or b"").decode().split(",") if mark}
        unsettled = self._unsettled({_job(mark) for mark in marks}) if marks else ()
        self._doubtful = {mark for mark in marks if _job(mark) in unsettled}
        self._batch = int(batch or 0)
        self._last = frozenset()
        self._holder = holder

    def send(self, messages: Sequence[Message]) -> Mapping[JobId, Exception]:
        """Append those that are not known to be there, and write down which they are.

        Raises:
            PositionTaken: Another relay has taken over.
        """
        # The last call's jobs are settled: they do not come again.
        self._doubtful -= self._last
        marks = [_mark(message) for message in messages]
        self._last = frozenset(marks)
        entries = [
            _entry(message)
            for message, mark in zip(messages, marks, strict=True)
            if mark not in self._doubtful
        ]
        sent = ",".join(self._doubtful | self._last)
        arguments = [self._holder or "", self._batch, self._maxlen, _pack(entries), sent]
        if not self._script(keys=[self._stream, self.position], args=arguments):
            text = f"another relay is sending to the stream {self._stream!r}, or its position was deleted"
            raise PositionTaken(text)
        self._batch += 1
        self._doubtful |= self._last
        return {}

    def close(self) -> None:
        """Forget who sends: the position is read anew."""
        self._holder = None
        self._client.close()


def _mark(message: Message) -> str:
    """What the position has of a message."""
    return f"{message.id}@{message.enqueued_at:.6f}"


def _job(mark: str) -> JobId:
    return JobId(int(mark.partition("@")[0]))


def _entry(message: Message) -> list[str]:
    """The names and values of an entry."""
    entry: list[str] = [
        "id", str(message.id), "aggregatetype", message.aggregatetype, "aggregateid", message.aggregateid,
        "type", message.type, "payload", message.payload.decode(),
    ]  # fmt: skip
    if message.headers:
        entry += ["headers", _json(message.headers).decode()]
    return entry
