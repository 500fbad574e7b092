"""An app for commands, which tells a database that refuses from a wrong command line."""

from typing import TypeVar

from rota import Rota
from rota.cli.database import refusals
from rota.store.operation import Operation

T = TypeVar("T")


class CommandApp(Rota):
    """An app that raises `Unusable` where the database refuses."""

    def run(self, operation: Operation[T]) -> T:
        """Run a store's operation."""
        with refusals():
            return super().run(operation)
