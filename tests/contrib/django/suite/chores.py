"""Tasks for the tests, as Django has them and of Rota's own."""

from contextlib import suppress
from typing import Any

from django.db import IntegrityError, connection, transaction
from shop.models import Order

from rota import Context, Secret
from rota.contrib.django import rota

try:
    from django.tasks import task as task  # noqa: PLC0414 - for others, too
except ImportError:
    from django_tasks import task as task  # noqa: PLC0414

NOT_A_TASK = "a text"


@task
def add(left: int, right: int = 1) -> int:
    return left + right


@task(priority=70, queue_name="mail")
def urgent() -> None: ...


@task(takes_context=True)
def tell_context(context: Any, *words: str, **named: str) -> dict[str, Any]:
    result = context.task_result
    return {"attempt": context.attempt, "id": result.id, "words": words, "named": named}


@task
async def wait_and_count() -> int:
    found: int = await Order.objects.acount()
    return found


@task(rota={"max_attempts": 2, "retry": lambda attempt, error: 0})
def fail(text: str = "no luck") -> None:
    raise ValueError(text)


@task(rota={"max_attempts": 2, "retry": lambda attempt, error: 0}, takes_context=True)
def fail_once(context: Any) -> list[int]:
    if context.attempt == 1:
        message = "the first time"
        raise KeyError(message)
    return [context.attempt, len(context.task_result.errors)]


@task(rota={"max_attempts": 2, "retry": lambda attempt, error: 0}, takes_context=True)
async def fail_once_async(context: Any) -> list[int]:
    await Order.objects.acount()
    if context.attempt == 1:
        message = "the first time"
        raise KeyError(message)
    return [context.attempt, len(context.task_result.errors)]


@task(rota={"max_attempts": 1})
def unstorable() -> object:
    return object()


@task(rota={"unique": "order:{order}"})
def once(order: int, *, note: str = "") -> None: ...


@task(rota={"max_attempts": 1})
def look_at_connection() -> bool:
    """Whether this handler begins without a connection, and leaves it used."""
    began_open = connection.connection is not None
    Order.objects.count()
    return began_open


@rota.task(name="note")
def note(number: int) -> None:
    del number


@rota.task(name="charge", retry=lambda attempt, error: None)
def charge(ctx: Context, email: str, *, fails: bool = False) -> None:
    with ctx.transaction(connection):
        Order.objects.create(email=email, cents=1)
        if fails:
            message = "after the write"
            raise RuntimeError(message)


@rota.task(name="charge inside", retry=lambda attempt, error: None)
def charge_inside(ctx: Context, email: str, *, commit: bool) -> None:
    """In a block of the handler's own, which Rota can only leave alone."""
    with transaction.atomic():
        Order.objects.create(email=email, cents=1)
        with ctx.transaction("default", commit=commit):
            Order.objects.create(email=email, cents=2)


@rota.task(name="charge outside", retry=lambda attempt, error: None)
def charge_outside(ctx: Context) -> None:
    with ctx.transaction(connection, commit=False):
        Order.objects.create(email="c@example.org", cents=1)


@rota.task(name="charge async", retry=lambda attempt, error: None)
async def charge_async(ctx: Context) -> None:
    async with ctx.transaction("default"):
        pass


@rota.task(name="order async", store_result=True, retry=lambda attempt, error: None)
async def order_async(email: str, *, fails: bool = False, twice: bool = False) -> int:
    order = await Order.objects.acreate(email=email, cents=1)
    found: int = await Order.objects.acount()
    await note.aenqueue(found)
    if fails:
        message = "after the write"
        raise RuntimeError(message)
    if twice:
        await Order.objects.acreate(pk=order.pk, email=email, cents=1)
    return found


@task
async def place_async(email: str) -> int:
    return await order_async(email)


@rota.task(name="order now", retry=lambda attempt, error: None)
def order_now(email: str, *, twice: bool = False) -> None:
    with transaction.atomic(durable=True):
        transaction.on_commit(lambda: None)
        order = Order.objects.create(email=email, cents=1)
    if twice:
        Order.objects.create(pk=order.pk, email=email, cents=1)


@rota.task(name="break the block")
def break_the_block() -> None:
    order = Order.objects.create(email="a@example.org", cents=1)
    with suppress(IntegrityError):
        Order.objects.create(pk=order.pk, email="b@example.org", cents=1)


@rota.task(name="order in a transaction", retry=lambda attempt, error: None)
async def order_in_a_transaction(
    ctx: Context, email: str, cents: int, *, fails: bool = False
) -> None:
    async with ctx.transaction() as tx:
        await Order.objects.acreate(email=email, cents=cents)
        await tx.aexecute("UPDATE shop_order SET cents = cents + 1")
        if fails:
            message = "after the write"
            raise RuntimeError(message)


@rota.task
def pay(order: int, token: Secret[str]) -> None: ...
