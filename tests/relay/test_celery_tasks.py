"""Celery as a target: calls of its tasks, through a real broker, to a real worker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import celery
import pytest
from celery.contrib.testing.worker import start_worker

from rota import ConfigError, Rota, State
from rota.relay import CeleryTasks
from tests.fixtures.workers import drained, records, until
from tests.relay.killing import killed_after_sending


def broker_of(redis_url: str) -> str:
    """The URL of a Redis server as Celery writes it."""
    parts = urlsplit(redis_url)
    return redis_url if parts.scheme == "redis" else f"redis+socket://{parts.path}?virtual_host=0"


@pytest.fixture
def shop(redis_url: str) -> Iterator[celery.Celery]:
    """An application of Celery whose broker is a Redis server, with a queue of this test's own."""
    shop = celery.Celery("shop", broker=broker_of(redis_url), set_as_current=False)
    shop.conf.task_default_queue = f"test.{uuid4().hex}"
    yield shop
    shop.close()


def taken(shop: celery.Celery) -> list[Any]:
    """The messages in the application's queue, which are gone afterwards."""
    with shop.connection_for_read() as connection, connection.channel() as channel:
        queue = shop.amqp.queues[shop.conf.task_default_queue](channel)
        queue.declare()
        return list(iter(lambda: queue.get(no_ack=True), None))


def test_a_message_is_a_call(app: Rota, shop: celery.Celery) -> None:
    """The type names the task, the payload has its arguments, the job's id is that of the call."""
    calls = app.relay("calls", to=CeleryTasks(shop))
    by_place = calls.enqueue("1", "shop.send", [1, "two"])
    by_name = calls.using(headers={"tenant": "acme"}).enqueue("1", "shop.send", {"to": "ada"})
    drained(app)
    one, two = taken(shop)
    assert (one.headers["id"], one.headers["task"]) == (str(by_place.id), "shop.send")
    assert one.payload[:2] == [[1, "two"], {}]
    assert (two.headers["id"], two.headers["tenant"]) == (str(by_name.id), "acme")
    assert two.payload[:2] == [[], {"to": "ada"}]


def test_a_worker_of_celery_runs_it(app: Rota, shop: celery.Celery) -> None:
    """A real worker of Celery runs what a relay has sent, in its order."""
    ran: list[int] = []

    def count(number: int) -> None:
        ran.append(number)

    shop.task(name="shop.count", shared=False)(count)
    calls = app.relay("calls", to=CeleryTasks(shop))
    calls.enqueue_many([("1", "shop.count", [n]) for n in range(5)])
    drained(app)
    with start_worker(shop, perform_ping_check=False, shutdown_timeout=20.0):
        until(lambda: len(ran) == 5, "Celery to run them")
    assert ran == list(range(5))


def test_a_worker_killed_between_sending_and_settling(
    app: Rota, shop: celery.Celery, tmp_path: Path
) -> None:
    """Its successor sends the batch again, with the same ids: no call is lost."""
    calls = app.relay("calls", to=CeleryTasks(shop), batch=3)
    jobs = calls.enqueue_many([("1", "shop.count", [n]) for n in range(5)])
    arguments = {"broker": shop.conf.broker_url, "queue": shop.conf.task_default_queue}
    killed_after_sending(app, "CeleryTasks", arguments, tmp_path, name="calls", batch=3)
    drained(app, session_timeout=1.0)
    assert [int(message.headers["id"]) for message in taken(shop)] == [*jobs[:3], *jobs]


def test_a_payload_that_is_no_arguments(app: Rota, shop: celery.Celery) -> None:
    """It is discarded with the reason, and the others go on."""
    calls = app.relay("calls", to=CeleryTasks(shop, queue=shop.conf.task_default_queue))
    bad, good = calls.enqueue("1", "shop.count", 3), calls.enqueue("1", "shop.count", [3])
    drained(app)
    assert [int(message.headers["id"]) for message in taken(shop)] == [good.id]
    [discarded] = records(app, State.DISCARDED)
    assert discarded.id == bad.id
    assert "a list of the task's positional arguments" in discarded.errors[0].message


def test_targets_that_cannot_be() -> None:
    """Something else than an application is refused, and a broker that would confirm nothing."""
    with pytest.raises(ConfigError, match=r"celery\.Celery"):
        CeleryTasks("amqp://localhost")
    with pytest.raises(ConfigError, match="timeout"):
        CeleryTasks(celery.Celery("shop", set_as_current=False), timeout=0)
    silent = celery.Celery("shop", broker="amqp://localhost", set_as_current=False)
    with pytest.raises(ConfigError, match="confirm_publish"):
        CeleryTasks(silent).open("calls", lambda _: ())
    silent.conf.broker_transport_options = {"confirm_publish": True}
    CeleryTasks(silent).open("calls", lambda _: ()).close()
