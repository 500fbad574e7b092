"""Redis Streams as a target: entries in order, each exactly once, whoever dies or comes late."""

import signal
from functools import partial
from pathlib import Path

import psycopg
import pytest

from rota import Rota
from rota.events import RelayInterrupted
from rota.model.job import JobId
from rota.relay import RedisStream
from rota.relay.message import Message
from rota.relay.redis_stream import PositionTaken, RedisSender
from tests.fixtures.workers import drained, until, working
from tests.relay.conftest import Stream
from tests.relay.killing import frozen_before_sending, killed_after_sending


def message(job: int, enqueued_at: float = 0.0) -> Message:
    """A message of the relay `orders`."""
    return Message(JobId(job), "orders", "1", "Placed", b"%d" % job, {}, enqueued_at)


def sender(stream: Stream, *unsettled: int) -> RedisSender:
    """What sends to the stream, beside a database in which these jobs have not ended."""
    target = RedisStream(stream.url, stream=stream.key)
    return target.open("orders", lambda jobs: [job for job in jobs if job in unsettled])


def test_an_entry_has_the_names_of_debezium(app: Rota, stream: Stream) -> None:
    """The job's id, the relay's name, key, type, the payload as JSON, and headers if there are any."""
    orders = app.relay("orders", to=RedisStream(stream.url, stream=stream.key))
    plain = orders.enqueue("4711", "OrderPlaced", {"total": 12.5, "what": "tea ☕"})
    traced = orders.using(headers={"traceparent": "00-ab"}).enqueue("4711", "OrderPaid", None)
    drained(app)
    assert stream.entries() == [
        {
            "id": str(plain.id),
            "aggregatetype": "orders",
            "aggregateid": "4711",
            "type": "OrderPlaced",
            "payload": '{"total":12.5,"what":"tea ☕"}',
        },
        {
            "id": str(traced.id),
            "aggregatetype": "orders",
            "aggregateid": "4711",
            "type": "OrderPaid",
            "payload": "null",
            "headers": '{"traceparent":"00-ab"}',
        },
    ]


def test_a_message_that_sql_has_stored(postgres_url: str, stream: Stream) -> None:
    """What `rota.enqueue` stores in the relay's queue is sent like any other message."""
    with Rota(postgres_url) as app, psycopg.connect(postgres_url) as conn:
        app.admin.migrate()
        app.relay("orders", to=RedisStream(stream.url, stream=stream.key))
        message = '{"aggregateid": "1", "type": "OrderPlaced", "payload": {"total": 12.5}}'
        conn.execute("SELECT rota.enqueue('orders', %s, queue => 'orders')", [message])
        conn.commit()
        drained(app)
    [entry] = stream.entries()
    assert (entry["aggregateid"], entry["type"]) == ("1", "OrderPlaced")
    assert stream.payloads() == [{"total": 12.5}]


def test_the_stream_has_the_order_of_the_log(app: Rota, stream: Stream) -> None:
    """Batches follow each other, by several workers too, and nothing is left."""
    orders = app.relay("orders", to=RedisStream(stream.url, stream=stream.key), batch=7)
    jobs = orders.enqueue_many([(str(n % 3), "Placed", n) for n in range(100)])
    with working(app, poll=0.01), working(app, poll=0.01):
        until(lambda: len(stream.ids()) >= 100, "the stream to be complete")
    assert stream.ids() == list(jobs)
    assert stream.payloads() == list(range(100))


def test_the_stream_has_the_usual_name(app: Rota, stream: Stream) -> None:
    """Without a key the stream is called as Debezium's topics are; and it can be kept short."""
    relay = app.relay(stream.key, to=RedisStream(stream.url, maxlen=10), batch=50)
    relay.enqueue_many([("1", "Placed", n) for n in range(500)])
    drained(app)
    stream.key = f"outbox.event.{stream.key}"
    kept = stream.payloads()
    # Redis removes whole nodes of a hundred entries.
    assert 10 <= len(kept) < 500
    assert kept == list(range(500))[-len(kept) :]


@pytest.mark.both
def test_a_worker_killed_between_sending_and_settling(
    app: Rota, stream: Stream, tmp_path: Path
) -> None:
    """Its successor repeats nothing, and goes on in the order of the log."""
    arguments = {"url": stream.url, "stream": stream.key}
    target = RedisStream(stream.url, stream=stream.key)
    orders = app.relay("orders", to=target, batch=10)
    jobs = orders.enqueue_many([("1", "Placed", n) for n in range(25)])
    killed_after_sending(app, "RedisStream", arguments, tmp_path, name="orders", batch=10)
    assert stream.ids() == list(jobs[:10])
    drained(app, session_timeout=1.0)
    assert stream.ids() == list(jobs)


@pytest.mark.large
def test_a_worker_frozen_before_sending(postgres_url: str, stream: Stream, tmp_path: Path) -> None:
    """PostgreSQL ends its transaction, another worker sends; what it sends on waking is refused."""
    arguments = {"url": stream.url, "stream": stream.key, "timeout": 0.5}
    with Rota(postgres_url) as app:
        app.admin.migrate()
        target = RedisStream(stream.url, stream=stream.key, timeout=0.5)
        orders = app.relay("orders", to=target, batch=10)
        jobs = orders.enqueue_many([("1", "Placed", n) for n in range(25)])
        with (
            frozen_before_sending(
                app, "RedisStream", arguments, tmp_path, name="orders", batch=10
            ) as frozen,
            working(app),
        ):
            until(lambda: len(stream.ids()) == 25, "another worker to send")
            frozen.send_signal(signal.SIGCONT)
            until((tmp_path / "sent").exists, "the frozen one to try")
            last = orders.enqueue("1", "Placed", 25)
            until(lambda: len(stream.ids()) >= 26, "the last message")
    assert stream.ids() == [*jobs, last.id]


def test_a_server_that_is_away(app: Rota, stream: Stream) -> None:
    """While Redis refuses, jobs wait; then they come in order, and nothing is repeated."""
    orders = app.relay("orders", to=RedisStream(stream.url, stream=stream.key), batch=2)
    first = orders.enqueue_many([("1", "Placed", n) for n in range(5)])
    # Not a stream: Redis refuses to append to it.
    stream.client.set(stream.key, "a text")
    with app.events.collect(RelayInterrupted) as told, working(app):
        until(lambda: told, "the relay to be refused")
        later = orders.enqueue("1", "Placed", 5)
        stream.client.delete(stream.key)
        until(lambda: len(stream.ids()) >= 6, "the stream to be complete")
    assert stream.ids() == [*first, later.id]
    assert (told[0].relay, type(told[0].error).__name__) == ("orders", "ResponseError")


# The position -------------------------------------------------------------------------------------


def test_who_was_replaced_appends_nothing(stream: Stream) -> None:
    """A relay frozen before it sent finds its position taken, and its batch sent by its successor."""
    frozen, successor = sender(stream), sender(stream)
    frozen.prepare()
    successor.prepare()
    with pytest.raises(PositionTaken):
        frozen.send([message(1)])
    assert stream.ids() == []
    successor.send([message(1)])
    with pytest.raises(PositionTaken):
        frozen.send([message(1)])
    assert stream.ids() == [1]


def test_a_command_that_comes_twice(stream: Stream) -> None:
    """What the network repeats is refused: a batch has a number."""
    relay = sender(stream)
    relay.prepare()
    relay.send([message(1)])
    relay._batch -= 1
    with pytest.raises(PositionTaken):
        relay.send([message(1)])
    assert stream.ids() == [1]


def test_what_was_sent_may_come_again_in_pieces(stream: Stream) -> None:
    """Jobs of a batch that was sent and not settled are known until each has come again.

    That holds also behind late jobs.
    """
    first = sender(stream)
    first.prepare()
    first.send([message(1), message(2), message(3)])
    second = sender(stream, 1, 2, 3)
    second.prepare()
    # Two late jobs come before, and the third of the batch no longer fits.
    second.send([message(8), message(9), message(1), message(2)])
    second.close()
    third = sender(stream, 3)
    third.prepare()
    third.send([message(3), message(4)])
    assert stream.ids() == [1, 2, 3, 8, 9, 4]


def test_jobs_that_were_settled_are_forgotten(stream: Stream) -> None:
    """The position has the jobs of the last batch alone, once those before are settled."""
    relay = sender(stream)
    relay.prepare()
    for number in range(1, 4):
        relay.send([message(number)])
    assert stream.client.hget(relay.position, "sent") == "3@0.000000"
    successor = sender(stream)
    successor.prepare()
    successor.send([message(4)])
    assert stream.client.hget(relay.position, "sent") == "4@0.000000"


def test_an_id_that_was_given_twice(stream: Stream) -> None:
    """A job with the id of a sent one, in a database restored meanwhile, is another job."""
    before = sender(stream)
    before.prepare()
    before.send([message(1, 100.0), message(2, 100.5)])
    restored = sender(stream, 1, 2)
    restored.prepare()
    restored.send([message(1, 100.0), message(2, 200.0)])
    assert stream.ids() == [1, 2, 2]


def test_relays_that_take_turns(app: Rota, stream: Stream) -> None:
    """A relay that finds another one at work says nothing, and goes on when it is its turn."""
    orders = app.relay("orders", to=RedisStream(stream.url, stream=stream.key))
    other = sender(stream)
    with app.events.collect(RelayInterrupted) as told, working(app):
        for count in range(1, 4):
            orders.enqueue("1", "Placed", count)
            until(partial(has, stream, count), "the message to arrive")
            other.close()
            other.prepare()
    assert told == []


def has(stream: Stream, count: int) -> bool:
    """Whether the stream has so many entries."""
    return len(stream.entries()) >= count
