"""An app for commands: what the database refuses is told apart from what was asked wrongly."""

from typing import TypeVar

from rota import Rota
from rota.cli.database import refusals
from rota.store.operation import Operation

T = TypeVar("T")


class Asking(Rota):
    """An app that raises `Unusable` where the database refuses."""

    def run(self, operation: Operation[T]) -> T:
        """Run a store's operation."""
        with refusals():
            return super().run(operation)
