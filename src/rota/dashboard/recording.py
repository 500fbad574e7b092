"""Who did what: written in the transaction in which it is done."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rota.app.app import Rota
from rota.model.audit import Deed
from rota.store.operation import Operation

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recorder:
    """Does something in the name of someone.

    Args:
        deed: What is written down, but for what is known only afterwards.
    """

    app: Rota
    deed: Deed

    def run(self, operation: Operation[T], changed: Callable[[T], int]) -> T:
        """Run an operation, and write down how much it has changed; nothing if it fails."""

        def deed(result: T) -> Deed:
            return self.deed._replace(changed=changed(result))

        database = self.app.database
        return database.run(database.store.audit.recorded(operation, deed))
