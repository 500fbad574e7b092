"""Functions that become tasks, or do not, during a test."""

from typing import Any

from tests.contrib.django.suite import chores


def without_context(other: int) -> None: ...


def of_order(order: int) -> None: ...


stranger: Any = None


def declare(options: dict[str, Any]) -> Any:
    """Declare a task with these options of Rota's."""
    return chores.task(rota=options)(of_order)


def of_another_backend() -> Any:
    """A task that belongs to the backend `other`."""
    return chores.task(backend="other")(without_context)
