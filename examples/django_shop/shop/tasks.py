"""What the shop does later: one task as Django has them, and one of Rota's own."""

from django.db import connection

from rota import Context
from rota.contrib.django import rota
from shop.models import Order

try:
    from django.tasks import task
except ImportError:  # before Django 6
    from django_tasks import task


@task(queue_name="default", rota={"unique": "receipt:{order}", "max_attempts": 8})
def send_receipt(order: int) -> str:
    """Send the receipt of an order."""
    found = Order.objects.get(pk=order)
    found.receipt_sent = True
    found.save()
    return f"receipt of {found.cents / 100:.2f} to {found.email}"


@rota.task(store_result=True)
def add_up(ctx: Context) -> int:
    """Add up all orders, exactly once."""
    with ctx.transaction(connection) as tx:
        cents: int = sum(Order.objects.values_list("cents", flat=True))
        tx.result(cents)
    return cents
