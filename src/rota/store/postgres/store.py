"""The PostgreSQL store: a database, and the operations on it."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rota.store.pool import TRANSACTION, USUAL, Pool
from rota.store.postgres import (
    clear,
    control,
    counters,
    notes,
    queue_settings,
    schema,
    sessions,
    settle,
)
from rota.store.postgres import job_transaction as effects
from rota.store.postgres import jobs as lookup
from rota.store.postgres import stage as timer
from rota.store.postgres import tidy as tidying
from rota.store.postgres.claim import Claims
from rota.store.postgres.connection import PostgresConnection
from rota.store.postgres.enqueue import Appender
from rota.store.postgres.listener import PostgresListener
from rota.store.postgres.look import Looks
from rota.store.postgres.relay import Relays
from rota.store.postgres.transaction import PostgresTransaction
from rota.store.postgres.url import read_url
from rota.store.postgres.wake import PostgresWaker

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
    from rota.store.postgres.clearing import Clear
    from rota.store.supervision import Supervision
    from rota.store.testing import Testing
    from rota.store.transfers import Transfers


class PostgresStore:
    """A PostgreSQL database; see `rota.store.protocol.Store`.

    Args:
        url: A URL that libpq understands. One parameter is Rota's own: `pooler=transaction` says
            that a pooler in front of the server gives every transaction another connection; then no
            statement is prepared, and workers poll instead of listening.
        connections: How many connections calls and transactions have at the most.

    Raises:
        ConfigError: The URL cannot be read.
    """

    name = "postgres"

    def __init__(self, url: str, *, connections: int = USUAL) -> None:
        self.url = url
        self._url, self._pooled = read_url(url)
        self._pool = Pool(connections, self._lendable, self._lendable_to_users)
        self.run = self._pool.run
        self.lent = self._pool.lent
        self.allow = self._pool.allow
        self.close = self._pool.close
        self.enqueue = Appender().enqueue
        self.claim = Claims().claim
        self.hand_over = Relays().hand_over
        # Behind a pooler no worker is woken anyway.
        self.look = Looks(listen=not self._pooled).look
        self._clear: Clear = {}

    def connect(self, purpose: str = "") -> PostgresConnection:
        """A new connection of Rota's own; nothing is opened yet."""
        return PostgresConnection(self._url, pooled=self._pooled, purpose=purpose)

    def transaction(self, *, tagged: bool = False) -> PostgresTransaction:
        """Begin a transaction of Rota's own."""
        return PostgresTransaction(
            self._pool.lend(TRANSACTION), self._pool.give_back, tagged=tagged
        )

    def waker(
        self,
        queues: Sequence[str],
        tasks: Collection[str] | None = None,
    ) -> PostgresWaker:
        """Something a worker of these queues can sleep on."""
        return PostgresWaker(self.connect("claimer"), queues, tasks, listen=not self._pooled)

    def listener(self) -> PostgresListener:
        """Something that hears of jobs that have ended."""
        return PostgresListener(self.connect("listener"), listen=not self._pooled)

    # Monitoring, and cron. The modules are loaded here: few processes need their statements.

    @property
    def cron(self) -> "Cron":
        """The operations on cron entries."""
        from rota.store.postgres import cron

        return cron.cron(self.enqueue)

    @property
    def audit(self) -> "Audit":
        """The operations on the audit."""
        from rota.store.postgres import audit

        return audit.AUDIT

    @property
    def memory(self) -> "Memory":
        """The operations on what jobs remember."""
        from rota.store.postgres import memory

        return memory.MEMORY_OF_JOBS

    @property
    def flows(self) -> "Flows":
        """The operations on flows."""
        from rota.store.postgres import flows

        return flows.FLOWS_OF_STORE

    @property
    def history(self) -> "History":
        """The operations on the history."""
        from rota.store.postgres import history

        return history.HISTORY

    @property
    def transfers(self) -> "Transfers":
        """The operations on transfers to other databases, and from them."""
        from rota.store.postgres import transfers

        return transfers.TRANSFERS

    @property
    def testing(self) -> "Testing":
        """The operations on the jobs of one open transaction."""
        from rota.store.postgres import testing

        return testing.PostgresTesting()

    @property
    def supervision(self) -> "Supervision":
        """The operations on other programs' transactions."""
        from rota.store.postgres import supervise

        return supervise.SUPERVISION

    def tidy(self) -> "Operation[list[str]]":
        """One round of housekeeping; what was done."""
        return tidying.tidy(self._clear)

    def missing_file(self) -> None:
        """Nothing is created by its use."""

    def check_server(self) -> "Operation[None]":
        """Refuse a server on which the log could not work."""
        from rota.store.postgres import server

        return server.check_server()

    def lanes(self) -> "Operation[list[LaneFacts]]":
        """Each lane, and how long ago its next job was enqueued."""
        from rota.store.postgres import live

        return live.lanes()

    def workers(self) -> "Operation[list[SessionFacts]]":
        """The sessions that are open."""
        from rota.store.postgres import live

        return live.workers()

    def passed_on(self) -> "Operation[list[TaskFacts]]":
        """The jobs that were passed on."""
        from rota.store.postgres import live

        return live.passed_on()

    def held(
        self, limit: int, sessions: "Sequence[SessionId] | None" = None
    ) -> "Operation[list[HeldFacts]]":
        """The jobs that workers hold."""
        from rota.store.postgres import live

        return live.held(limit, sessions)

    def limits(self, size: int, after: str = "") -> "Operation[list[LimitRecord]]":
        """The limits that are in use."""
        from rota.store.postgres import live

        return live.limits(size, after)

    def horizon(self) -> "Operation[HorizonFacts]":
        """What keeps vacuum from removing rows."""
        from rota.store.postgres import live

        return live.horizon()

    def product(self) -> "Operation[str]":
        """Such as "PostgreSQL 15.4"."""
        from rota.store.postgres import live

        return live.product()

    def read_only(self) -> "Operation[bool]":
        """Whether this role can only read here."""
        from rota.store.postgres import live

        return live.read_only()

    def health(self) -> "Operation[Facts]":
        """Facts about the database's health."""
        from rota.store.postgres import health

        return health.health(pooled=self._pooled)

    def integrity(self) -> "Operation[tuple[str, ...] | None]":
        """PostgreSQL has no check of its own that reads everything."""
        from rota.store.postgres import health

        return health.integrity()

    def hears(self, timeout: float) -> bool | None:
        """Whether a notification comes back within so many seconds; None behind a known pooler."""
        from rota.store.postgres import probe

        return None if self._pooled else probe.hears(self.connect, timeout)

    def _lendable(self) -> PostgresConnection:
        elsewhere = self._pool.apart
        return PostgresConnection(self._url, pooled=self._pooled, elsewhere=elsewhere)

    def _lendable_to_users(self) -> PostgresConnection:
        return PostgresConnection(self._url, pooled=self._pooled, tuned=False)

    get = staticmethod(lookup.get)
    list_jobs = staticmethod(lookup.list_jobs)
    reach = staticmethod(lookup.reach)
    standing = staticmethod(lookup.standing)
    count_jobs = staticmethod(lookup.count_jobs)
    count_listed = staticmethod(lookup.count_listed)
    queues = staticmethod(lookup.queues)
    cancel = staticmethod(control.cancel)
    retry = staticmethod(control.retry)
    delete = staticmethod(control.delete)
    pause = staticmethod(control.pause)
    resume = staticmethod(control.resume)
    set_queue = staticmethod(queue_settings.set_queue)
    queue_settings = staticmethod(queue_settings.queue_settings)
    queue_names = staticmethod(lookup.queue_names)
    last_job = staticmethod(clear.last_job)
    clear = staticmethod(clear.clear)
    open_session = staticmethod(sessions.open_session)
    renew = staticmethod(sessions.renew)
    know = staticmethod(sessions.know)
    begin_lot = staticmethod(sessions.begin_lot)
    close_session = staticmethod(sessions.close_session)
    release = staticmethod(sessions.release)
    settle = staticmethod(settle.settle)
    note = staticmethod(notes.note)
    notes = staticmethod(notes.notes)
    single_out = staticmethod(effects.single_out)
    lease_of = staticmethod(effects.lease_of)
    tag = staticmethod(effects.tag)
    settle_tagged = staticmethod(effects.settle_tagged)
    settle_free = staticmethod(effects.settle_free)
    due = staticmethod(timer.due)
    stage = staticmethod(timer.stage)
    rescue = staticmethod(sessions.rescue)
    squeeze = staticmethod(counters.squeeze)
    schema_version = staticmethod(schema.schema_version)
    oldest_code = staticmethod(schema.oldest_code)
    migrations = staticmethod(schema.migrations)
    migrate = staticmethod(schema.migrate)
    script = staticmethod(schema.script)
    removal = staticmethod(schema.removal)
    elsewhere = staticmethod(schema.elsewhere)
    identity = staticmethod(schema.identity)
