"""RabbitMQ as a target: messages with their properties, in order, each at least once."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import amqp
import pytest

from rota import ConfigError, Rota, State
from rota.events import RelayInterrupted
from rota.relay import RabbitMQ
from rota.relay.rabbitmq import MessageNotConfirmed
from tests.fixtures.workers import drained, records, until, working
from tests.relay.killing import killed_after_sending

# Erlang takes seconds of processor time to start.
needs_broker = pytest.mark.large


class Queue:
    """A queue of a broker.

    Attributes:
        name: Its name, of this test alone.
    """

    def __init__(self, url: str) -> None:
        self.url, self.name = url, f"test.{uuid4().hex}"
        self._connection = amqp.Connection(host=urlsplit(url).netloc.rpartition("@")[2])
        self._connection.connect()
        self._channel: Any = self._connection.channel()

    def declare(self, **arguments: object) -> None:
        """Make it."""
        self._channel.queue_declare(
            self.name, durable=True, auto_delete=False, arguments=arguments or None
        )

    def delete(self) -> None:
        """Remove it, and end the connection, unless that was done."""
        if self._connection.connected:
            self._channel.queue_delete(self.name)
            self._connection.close()

    def taken(self) -> list[Any]:
        """All messages, which are gone afterwards."""
        return list(iter(lambda: self._channel.basic_get(self.name, no_ack=True), None))

    def count(self) -> int:
        """How many there are."""
        return int(self._channel.queue_declare(self.name, passive=True).message_count)

    def target(self) -> RabbitMQ:
        """The queue as a target, by the default exchange."""
        return RabbitMQ(self.url, routing_key=self.name)


@pytest.fixture
def queue(rabbitmq_url: str) -> Iterator[Queue]:
    """A queue that no other test has."""
    queue = Queue(rabbitmq_url)
    queue.declare()
    yield queue
    queue.delete()


def ids(messages: list[Any]) -> list[int]:
    """The ids of messages."""
    return [int(message.properties["message_id"]) for message in messages]


@needs_broker
def test_a_message_has_its_properties(app: Rota, queue: Queue) -> None:
    """The job's id as message id, the type, the payload as JSON, the rest and headers as headers."""
    orders = app.relay("orders", to=queue.target())
    job = orders.using(headers={"tenant": "acme"}).enqueue("4711", "OrderPlaced", {"total": 12.5})
    drained(app)
    [message] = queue.taken()
    assert message.body == '{"total":12.5}'
    assert message.properties == {
        "message_id": str(job.id),
        "type": "OrderPlaced",
        "content_type": "application/json",
        "content_encoding": "utf-8",
        "delivery_mode": 2,
        "application_headers": {
            "id": str(job.id),
            "aggregatetype": "orders",
            "aggregateid": "4711",
            "type": "OrderPlaced",
            "tenant": "acme",
        },
    }


@needs_broker
def test_the_queue_has_the_order_of_the_log(app: Rota, queue: Queue) -> None:
    """Batches follow each other, and each message is confirmed."""
    orders = app.relay("orders", to=queue.target(), batch=70)
    jobs = orders.enqueue_many([(str(n % 3), "Placed", n) for n in range(300)])
    drained(app)
    assert ids(queue.taken()) == list(jobs)


@needs_broker
def test_a_worker_killed_between_sending_and_settling(
    app: Rota, queue: Queue, tmp_path: Path
) -> None:
    """Its successor sends the batch again, with the same ids, and then goes on: no message is lost."""
    target = queue.target()
    orders = app.relay("orders", to=target, batch=10)
    jobs = orders.enqueue_many([("1", "Placed", n) for n in range(25)])
    arguments = {"url": queue.url, "routing_key": queue.name}
    killed_after_sending(app, "RabbitMQ", arguments, tmp_path, name="orders", batch=10)
    drained(app, session_timeout=1.0)
    assert ids(queue.taken()) == [*jobs[:10], *jobs]


@needs_broker
def test_a_queue_that_is_missing(app: Rota, queue: Queue) -> None:
    """A message that no queue would get stays where it is, until there is one."""
    queue.delete()
    other = Queue(queue.url)
    job = app.relay("orders", to=other.target()).enqueue("1", "Placed", None)
    with app.events.collect(RelayInterrupted) as told, working(app):
        until(lambda: told, "the relay to be refused")
        other.declare()
        until(other.count, "the message to arrive")
    assert ids(other.taken()) == [job.id]
    other.delete()


@needs_broker
def test_a_queue_that_is_full(app: Rota, queue: Queue) -> None:
    """What the broker does not confirm is sent again."""
    queue.delete()
    full = Queue(queue.url)
    full.declare(**{"x-max-length": 1, "x-overflow": "reject-publish"})
    jobs = app.relay("orders", to=full.target(), batch=1).enqueue_many(
        [("1", "Placed", n) for n in range(2)]
    )
    with app.events.collect(RelayInterrupted) as told, working(app):
        until(lambda: told, "the relay to be refused")
        assert ids(full.taken()) == [jobs[0]]
        until(full.count, "the second message to arrive")
    assert ids(full.taken()) == [jobs[1]]
    assert isinstance(told[0].error, MessageNotConfirmed)
    full.delete()


@needs_broker
def test_a_type_that_amqp_cannot_carry(app: Rota, queue: Queue) -> None:
    """It is discarded with the reason, and the others go on."""
    orders = app.relay("orders", to=queue.target())
    orders.enqueue("1", "x" * 256, None)
    good = orders.enqueue("1", "x" * 255, None)
    drained(app)
    assert ids(queue.taken()) == [good.id]
    [discarded] = records(app, State.DISCARDED)
    assert "255 bytes" in discarded.errors[0].message


def test_a_broker_that_is_away(app: Rota) -> None:
    """The messages wait, in their order."""
    target = RabbitMQ("amqp://127.0.0.1:1/", timeout=1.0)
    app.relay("orders", to=target).enqueue("1", "Placed", None)
    with app.events.collect(RelayInterrupted) as told, working(app):
        until(lambda: told, "the relay to be refused")
    assert isinstance(told[0].error, ConnectionError)
    assert [job.attempt for job in records(app, State.AVAILABLE)] == [0]


@pytest.mark.parametrize(
    ("url", "options"), [("localhost", {}), ("http://x", {}), ("amqp://x", {"timeout": 0})]
)
def test_an_exchange_that_cannot_be(url: str, options: dict[str, Any]) -> None:
    """Bad targets are refused where they are made."""
    with pytest.raises(ConfigError, match="RabbitMQ"):
        RabbitMQ(url, **options)


def test_a_target_is_closed_twice(app: Rota) -> None:
    """Nothing happens to what is closed already."""
    sender = RabbitMQ("amqp://127.0.0.1:1/").open("orders", lambda _: ())
    with closing(sender), pytest.raises(ConnectionError):
        sender.prepare()
    sender.close()
    del app
