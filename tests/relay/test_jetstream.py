"""NATS JetStream as a target: messages with headers, in order, once within the stream's window."""

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import nats
import pytest
from nats.js.api import StreamConfig

from rota import ConfigError, Rota, State
from rota.events import RelayInterrupted
from rota.relay import JetStream, jetstream
from rota.relay.jetstream import StreamRefused
from rota.relay.message import Message, MessageRefused
from tests.fixtures.workers import drained, records, until, working
from tests.relay.killing import killed_after_sending

if TYPE_CHECKING:
    from nats.aio.client import Client

T = TypeVar("T")


class Stream:
    """A stream of a NATS server, and its one subject.

    Attributes:
        name: Its name and its subject, of this test alone.
    """

    def __init__(self, url: str) -> None:
        self.url, self.name = url, f"test-{uuid4().hex}"
        self._runner = asyncio.Runner()
        self._client: Client = self._run(nats.connect(url))
        self._manager = self._client.jetstream()

    def _run(self, doing: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(doing)

    def make(self, **options: Any) -> None:
        """Make it."""
        config = StreamConfig(name=self.name, subjects=[self.name], **options)
        self._run(self._manager.add_stream(config))

    def close(self) -> None:
        """Remove it, and end the connection."""
        self._run(self._manager.delete_stream(self.name))
        self._run(self._client.close())
        self._runner.close()

    def count(self) -> int:
        """How many messages it has."""
        return self._run(self._manager.stream_info(self.name)).state.messages

    def messages(self) -> list[Any]:
        """All messages, in their order."""
        return [
            self._run(self._manager.get_msg(self.name, number))
            for number in range(1, self.count() + 1)
        ]

    def ids(self) -> list[int]:
        """The ids of the messages, in their order."""
        return [int(message.headers["Nats-Msg-Id"]) for message in self.messages()]


@pytest.fixture
def unmade(nats_url: str) -> Iterator[Stream]:
    """A stream that no other test has, and that the test has to make."""
    stream = Stream(nats_url)
    yield stream
    stream.close()


@pytest.fixture
def stream(unmade: Stream) -> Stream:
    """A stream with the window of two minutes that streams usually have."""
    unmade.make()
    return unmade


def test_a_message_has_its_headers(app: Rota, stream: Stream) -> None:
    """The job's id as message id, the payload as JSON, the rest and the job's headers as headers."""
    orders = app.relay("orders", to=JetStream(stream.url, subject=stream.name))
    job = orders.using(headers={"tenant": "acme"}).enqueue("4711", "OrderPlaced", {"total": 12.5})
    drained(app)
    [message] = stream.messages()
    assert message.data == b'{"total":12.5}'
    assert message.headers == {
        "Nats-Msg-Id": str(job.id),
        "id": str(job.id),
        "aggregatetype": "orders",
        "aggregateid": "4711",
        "type": "OrderPlaced",
        "tenant": "acme",
    }


def test_the_stream_has_the_order_of_the_log(app: Rota, stream: Stream) -> None:
    """Batches follow each other."""
    orders = app.relay("orders", to=JetStream(stream.url, subject=stream.name), batch=30)
    jobs = orders.enqueue_many([(str(n % 3), "Placed", n) for n in range(100)])
    drained(app)
    assert stream.ids() == list(jobs)


@pytest.mark.parametrize("window", [120, 0.1])
def test_a_worker_killed_between_sending_and_settling(
    app: Rota, unmade: Stream, tmp_path: Path, window: float
) -> None:
    """Its successor sends the batch again, which the stream drops in its window, and goes on."""
    unmade.make(duplicate_window=window)
    orders = app.relay("orders", to=JetStream(unmade.url, subject=unmade.name), batch=10)
    jobs = orders.enqueue_many([("1", "Placed", n) for n in range(25)])
    arguments = {"url": unmade.url, "subject": unmade.name}
    killed_after_sending(app, "JetStream", arguments, tmp_path, name="orders", batch=10)
    if window < 1:
        # The window of the first batch is over when the server takes a message again that it had.
        until(lambda: forgotten(unmade), "the window to be over")
    drained(app, session_timeout=1.0)
    again = list(jobs[:10]) if window < 1 else []
    sent = [number for number in unmade.ids() if number]
    assert sent == [*jobs[:10], *again, *jobs[10:]] if again else sent == list(jobs)


def forgotten(stream: Stream) -> bool:
    """Whether the server has forgotten an id that it learned just before; its messages have the id 0."""
    sender = JetStream(stream.url, subject=stream.name).open("orders", lambda _: ())
    before = stream.count()
    sender.prepare()
    sender.send([Message(0, "orders", "1", "Placed", b"0", {})])  # type: ignore[arg-type]
    sender.close()
    return before > 10 and stream.count() > before


def test_a_stream_that_is_missing(app: Rota, unmade: Stream) -> None:
    """Messages that no stream would keep stay where they are, until there is one."""
    orders = app.relay("orders", to=JetStream(unmade.url, subject=unmade.name))
    jobs = orders.enqueue_many([("1", "Placed", n) for n in range(3)])
    with app.events.collect(RelayInterrupted) as told, working(app):
        until(lambda: told, "the relay to be refused")
        unmade.make()
        until(lambda: unmade.count() >= 3, "the messages to arrive")
    assert unmade.ids() == list(jobs)
    assert isinstance(told[0].error, StreamRefused)
    assert "no stream" in str(told[0].error)


def test_messages_that_nats_cannot_carry(app: Rota, unmade: Stream) -> None:
    """Messages too large, or with a line break in a header, are discarded; the others go on."""
    unmade.make(max_msg_size=1000)
    orders = app.relay("orders", to=JetStream(unmade.url, subject=unmade.name))
    bad = [
        orders.enqueue("1", "Placed", "x" * 2000),
        orders.enqueue("one\ntwo", "Placed", None),
    ]
    good = orders.enqueue("1", "Placed", None)
    drained(app)
    assert unmade.ids() == [good.id]
    assert {job.id for job in records(app, State.DISCARDED)} == {job.id for job in bad}


def test_a_message_larger_than_the_server_takes() -> None:
    """It is refused before it is sent, since the server would end the connection."""
    message = Message(1, "orders", "1", "Placed", b"x" * 1000, {})  # type: ignore[arg-type]
    assert jetstream._headers(message, 1200)["id"] == "1"
    with pytest.raises(MessageRefused, match="takes at most 1050"):
        jetstream._headers(message, 1050)


def test_a_connection_that_was_idle(
    app: Rota, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while another one is opened, which nobody has to be told."""
    monkeypatch.setattr(jetstream, "IDLE", 0.0)
    orders = app.relay("orders", to=JetStream(stream.url, subject=stream.name), batch=1)
    jobs = orders.enqueue_many([("1", "Placed", n) for n in range(3)])
    with app.events.collect(RelayInterrupted) as told:
        drained(app)
    assert stream.ids() == list(jobs)
    assert told == []


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("localhost:4222", {}),
        ("nats://one, http://two", {}),
        ("nats://x", {"timeout": 0}),
        ("nats://x", {"subject": "orders.*"}),
    ],
)
def test_a_subject_that_cannot_be(url: str, options: dict[str, Any]) -> None:
    """Bad targets are refused where they are made."""
    with pytest.raises(ConfigError, match="JetStream"):
        JetStream(url, **options)
