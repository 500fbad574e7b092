"""The seam: every operation a backend offers. The rest of Rota knows nothing else of databases.

A `Store` builds operations; a `Connection` runs them. All operations act on batches and say which
ids they changed; what they did not change is not in the answer. A backend may need one statement
or ten for an operation, and may keep jobs as a log (PostgreSQL) or as rows (SQLite): one
conformance suite, `tests/store`, holds for all of them.

What most of Rota asks for is in `asking`, `working` and `looking`; the other rooms are attributes
of the store.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rota.store.asking import Asking
from rota.store.connections import Connections
from rota.store.looking import Looking
from rota.store.operation import Operation
from rota.store.versions import Versions
from rota.store.working import Working

if TYPE_CHECKING:
    from rota.store.audit import Audit
    from rota.store.cron import Cron
    from rota.store.flows import Flows
    from rota.store.history import History
    from rota.store.memory import Memory
    from rota.store.supervision import Supervision
    from rota.store.testing import Testing
    from rota.store.transfers import Transfers


class Store(Connections, Versions, Asking, Working, Looking, Protocol):
    """One database, as Rota sees it."""

    name: str
    """The backend's name: `postgres` or `sqlite`."""

    url: str
    """Which database it is; it may hold a password."""

    @property
    def cron(self) -> "Cron":
        """The operations on cron entries."""
        ...

    @property
    def audit(self) -> "Audit":
        """The operations on the audit."""
        ...

    @property
    def supervision(self) -> "Supervision | None":
        """The operations on other programs' transactions; None where there are no sessions."""
        ...

    @property
    def memory(self) -> "Memory":
        """The operations on what jobs remember across their runs."""
        ...

    @property
    def flows(self) -> "Flows":
        """The operations on flows."""
        ...

    @property
    def history(self) -> "History":
        """The operations on the history: what happened in each of the last minutes."""
        ...

    @property
    def transfers(self) -> "Transfers":
        """The operations on transfers to other databases, and from them."""
        ...

    @property
    def testing(self) -> "Testing":
        """The operations on the jobs of one open transaction, for the test kit."""
        ...

    def missing_file(self) -> Path | None:
        """The file that the first use would create; None where nothing is created."""
        ...

    def elsewhere(self) -> Operation[str | None]:
        """The other database a caller's connection leads to; None: it is this, or nothing tells."""
        ...

    def identity(self) -> Operation[str]:
        """Which database this is: one text for all its URLs, another for each other database."""
        ...
