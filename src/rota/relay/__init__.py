"""Relays: jobs that are messages for another system, sent there in their order.

    orders = rota.relay("orders", to=RedisStream("redis://localhost"))
    orders.enqueue("4711", "OrderPlaced", {"total": 12}, conn=session)

The clients of the targets are extras, imported by the workers that send.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.relay.celery_tasks import CeleryTasks
    from rota.relay.jetstream import JetStream
    from rota.relay.rabbitmq import RabbitMQ
    from rota.relay.redis_stream import RedisStream
    from rota.relay.relay import Relay

LATER = {
    "CeleryTasks": "rota.relay.celery_tasks",
    "JetStream": "rota.relay.jetstream",
    "RabbitMQ": "rota.relay.rabbitmq",
    "RedisStream": "rota.relay.redis_stream",
    "Relay": "rota.relay.relay",
}
"""What is imported where it is asked for: a worker without relays loads no target."""


def __getattr__(name: str) -> Any:
    if name in LATER:
        import importlib

        return getattr(importlib.import_module(LATER[name]), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


__all__ = ["CeleryTasks", "JetStream", "RabbitMQ", "RedisStream", "Relay"]
