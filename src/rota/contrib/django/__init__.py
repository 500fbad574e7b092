"""Rota in a Django project.

Put `rota.contrib.django` into INSTALLED_APPS and run `manage.py migrate`. Jobs are then kept in the
database of the alias "default" (or of the setting ROTA_DATABASE), and join its transactions:

    from rota.contrib.django import rota

    @rota.task
    def send_receipt(order: int) -> None: ...

    with transaction.atomic():
        order = Order.objects.create(…)
        send_receipt.enqueue(order.pk)

`rota.contrib.django.backend.RotaBackend` is a backend for Django's own tasks.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.contrib.django.app import DjangoRota, rota

__all__ = ["DjangoRota", "rota"]


def __getattr__(name: str) -> Any:
    # Django imports this package before the settings are ready.
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from rota.contrib.django import app

    return getattr(app, name)
