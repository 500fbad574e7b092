"""The SQLite store: a file, and the operations on it.

One machine, a local disk, one writer at a time. What it costs: a write transaction is durable in
one flush (enqueue) or in none of its own (claim, settle: a power cut may undo the last of them, and
these jobs run again; a crash of processes undoes nothing).
"""

import os
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rota.store.pool import TRANSACTION, USUAL, Pool
from rota.store.sqlite import claim as claiming
from rota.store.sqlite import clear as clearing
from rota.store.sqlite import control, notes, queue_settings, schema, sessions
from rota.store.sqlite import enqueue as enqueuing
from rota.store.sqlite import job_transaction as effects
from rota.store.sqlite import jobs as lookup
from rota.store.sqlite import look as looking
from rota.store.sqlite import queues as counting
from rota.store.sqlite import relay as relaying
from rota.store.sqlite import settle as settling
from rota.store.sqlite import stage as staging
from rota.store.sqlite import tidy as tidying
from rota.store.sqlite.connection import PATIENCE, SqliteConnection
from rota.store.sqlite.listener import SqliteListener
from rota.store.sqlite.transaction import SqliteTransaction
from rota.store.sqlite.url import database_path, url_of
from rota.store.sqlite.wake import SqliteWaker

if TYPE_CHECKING:
    from rota.model.job import SessionId
    from rota.model.limit_record import LimitRecord
    from rota.store.audit import Audit
    from rota.store.cron import Cron
    from rota.store.flows import Flows
    from rota.store.health import (
        Facts,
        HeldFacts,
        HorizonFacts,
        LaneFacts,
        SessionFacts,
        TaskFacts,
    )
    from rota.store.history import History
    from rota.store.memory import Memory
    from rota.store.operation import Operation
    from rota.store.testing import Testing
    from rota.store.transfers import Transfers

HOT = frozenset({"call", "claimer", "settler"})
"""The purposes of the connections through which each job passes, from its enqueue to its end."""


class SqliteStore:
    """Jobs in a SQLite file; see `rota.store.protocol.Store`.

    Args:
        path_or_url: A path, or a URL such as `sqlite:///rota.db` or `sqlite:////srv/rota.db`.
        patience: Seconds to wait for a lock that another connection holds.
        connections: How many connections calls and transactions have at the most.

    Raises:
        ConfigError: It names no file that several connections can share.
    """

    name = "sqlite"

    def __init__(
        self,
        path_or_url: str | os.PathLike[str],
        *,
        patience: float = PATIENCE,
        connections: int = USUAL,
    ) -> None:
        self.path = database_path(path_or_url)
        self.url = url_of(self.path)
        self._patience = patience
        self._pool = Pool(connections, partial(self.connect, "call"), self.connect)
        self.run = self._pool.run
        self.lent = self._pool.lent
        self.allow = self._pool.allow
        self.close = self._pool.close

    def connect(self, purpose: str = "") -> SqliteConnection:
        """A new connection of Rota's own; nothing is opened yet."""
        return SqliteConnection(self.path, patience=self._patience, checked=purpose not in HOT)

    def transaction(self, *, tagged: bool = False) -> SqliteTransaction:
        """Begin a transaction of Rota's own."""
        return SqliteTransaction(self._pool.lend(TRANSACTION), self._pool.give_back, tagged=tagged)

    def waker(self, queues: Sequence[str], tasks: Collection[str] | None = None) -> SqliteWaker:
        """Something a worker of these queues can sleep on, which knows these tasks."""
        return SqliteWaker(self.connect("claimer"), queues, tasks)

    def listener(self) -> SqliteListener:
        """Something that hears of jobs that have ended."""
        return SqliteListener(self.connect())

    # Monitoring, and cron. The modules are loaded here: few processes need their statements.

    @property
    def cron(self) -> "Cron":
        """The operations on cron entries."""
        from rota.store.sqlite import cron

        return cron.cron(self.enqueue)

    @property
    def audit(self) -> "Audit":
        """The operations on the audit."""
        from rota.store.sqlite import audit

        return audit.AUDIT

    @property
    def memory(self) -> "Memory":
        """The operations on what jobs remember."""
        from rota.store.sqlite import memory

        return memory.MEMORY_OF_JOBS

    @property
    def flows(self) -> "Flows":
        """The operations on flows."""
        from rota.store.sqlite import flows

        return flows.FLOWS_OF_STORE

    @property
    def history(self) -> "History":
        """The operations on the history."""
        from rota.store.sqlite import history

        return history.HISTORY

    @property
    def transfers(self) -> "Transfers":
        """The operations on transfers to other databases, and from them."""
        from rota.store.sqlite import transfers

        return transfers.TRANSFERS

    @property
    def testing(self) -> "Testing":
        """The operations on the jobs of one open transaction."""
        from rota.store.sqlite import testing

        return testing.SqliteTesting(self.path)

    @property
    def supervision(self) -> None:
        """A file's processes have no sessions that could be ended."""

    def elsewhere(self) -> "Operation[str | None]":
        """The other file to which a caller's connection leads."""
        return schema.elsewhere(self.path)

    def missing_file(self) -> Path | None:
        """The file, if its first use would create it."""
        path = Path(self.path)
        return None if path.exists() else path

    def check_server(self) -> "Operation[None]":
        """Any SQLite will do that can be opened."""
        return schema.check_server()

    def lanes(self) -> "Operation[list[LaneFacts]]":
        """Each lane, and how long ago its next job was enqueued."""
        from rota.store.sqlite import live

        return live.lanes()

    def workers(self) -> "Operation[list[SessionFacts]]":
        """The sessions that are open."""
        from rota.store.sqlite import live

        return live.workers()

    def passed_on(self) -> "Operation[list[TaskFacts]]":
        """The jobs that were passed on."""
        from rota.store.sqlite import live

        return live.passed_on()

    def held(
        self, limit: int, sessions: "Sequence[SessionId] | None" = None
    ) -> "Operation[list[HeldFacts]]":
        """The jobs that workers hold."""
        from rota.store.sqlite import live

        return live.held(limit, sessions)

    def limits(self, size: int, after: str = "") -> "Operation[list[LimitRecord]]":
        """The limits that are in use."""
        from rota.store.sqlite import live

        return live.limits(size, after)

    def horizon(self) -> "Operation[HorizonFacts]":
        """How long the write-ahead log has become."""
        from rota.store.sqlite import live

        return live.horizon(self.path)

    def product(self) -> "Operation[str]":
        """Such as "SQLite 3.51.3"."""
        from rota.store.sqlite import live

        return live.product()

    def read_only(self) -> "Operation[bool]":
        """Whether this process may only read the file."""
        from rota.store.sqlite import live

        return live.read_only(self.path)

    def health(self) -> "Operation[Facts]":
        """Facts about the file's health."""
        from rota.store.sqlite import health

        return health.health(self.path, max(self.migrations()))

    def integrity(self) -> "Operation[tuple[str, ...] | None]":
        """Faults in the file."""
        from rota.store.sqlite import health

        return health.integrity()

    def hears(self, timeout: float) -> bool | None:  # noqa: ARG002 - PostgreSQL's
        """None: workers on one machine wake each other without the database."""
        return None

    enqueue = staticmethod(enqueuing.enqueue)

    get = staticmethod(lookup.get)
    list_jobs = staticmethod(lookup.list_jobs)
    reach = staticmethod(lookup.reach)
    standing = staticmethod(lookup.standing)
    count_jobs = staticmethod(lookup.count_jobs)
    count_listed = staticmethod(lookup.count_listed)
    cancel = staticmethod(control.cancel)
    retry = staticmethod(control.retry)
    delete = staticmethod(control.delete)
    queues = staticmethod(counting.queues)
    pause = staticmethod(counting.pause)
    resume = staticmethod(counting.resume)
    set_queue = staticmethod(queue_settings.set_queue)
    queue_settings = staticmethod(queue_settings.queue_settings)
    queue_names = staticmethod(counting.queue_names)
    last_job = staticmethod(clearing.last_job)
    clear = staticmethod(clearing.clear)

    open_session = staticmethod(sessions.open_session)
    renew = staticmethod(sessions.renew)
    know = staticmethod(sessions.know)
    begin_lot = staticmethod(sessions.begin_lot)
    close_session = staticmethod(sessions.close_session)
    release = staticmethod(sessions.release)
    claim = staticmethod(claiming.claim)
    hand_over = staticmethod(relaying.hand_over)
    settle = staticmethod(settling.settle)
    note = staticmethod(notes.note)
    notes = staticmethod(notes.notes)
    single_out = staticmethod(effects.single_out)
    lease_of = staticmethod(effects.lease_of)
    tag = staticmethod(effects.tag)
    settle_tagged = staticmethod(effects.settle_tagged)
    settle_free = staticmethod(effects.settle_free)
    look = staticmethod(looking.look)
    due = staticmethod(staging.due)
    stage = staticmethod(staging.stage)
    rescue = staticmethod(sessions.rescue)
    squeeze = staticmethod(counting.squeeze)
    tidy = staticmethod(tidying.tidy)

    schema_version = staticmethod(schema.schema_version)
    oldest_code = staticmethod(schema.oldest_code)
    identity = staticmethod(schema.identity)
    migrations = staticmethod(schema.migrations)
    migrate = staticmethod(schema.migrate)
    script = staticmethod(schema.script)
    removal = staticmethod(schema.removal)
