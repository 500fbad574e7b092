"""What a kit does, written once for blocking and async tests: each method is a generator of calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from rota.app.app import Rota
from rota.app.batch import BatchTask
from rota.app.resources import Resources
from rota.app.task import Task
from rota.errors import ConfigError
from rota.model.job import ClaimedJob, JobId, SessionId
from rota.model.settlement import released
from rota.model.states import Move
from rota.outcome import Outcome
from rota.store.testing import Here, Wanted
from rota.store.url import shown
from rota.testing.attempts import Attempts, Flow
from rota.testing.calling import Side
from rota.testing.confinement import Confinement
from rota.testing.frames import hidden
from rota.testing.jobs import EnqueuedJob, read_args
from rota.testing.runs import Run
from rota.testing.savepoints import ENDED

__tracebackhide__ = hidden

_databases: dict[str, str] = {}
"""By URL, the database that an app's own connections lead to: asked for once in a process."""

_prepared: set[tuple[str, str, int]] = set()
"""The lanes that are there, by the app's URL."""

NO_TRANSACTION = (
    "the test's connection is not in a transaction, so a rollback would undo nothing: begin one before "
    "rota_test.use(...). psycopg: no autocommit, or `with conn.transaction(force_rollback=True)`; asyncpg: "
    "`await conn.transaction().start()`; sqlite3: no autocommit, or execute('BEGIN'); SQLAlchemy: "
    "`connection.begin()`; Django: a TestCase, whose tests may be async, or atomic()"
)


@dataclass(frozen=True, slots=True)
class Part:
    """Which jobs a drain runs, and how."""

    queues: tuple[str, ...] | None = None
    due: Literal["now", "all"] = "now"
    recursive: bool = True
    raises: bool = True
    limit: int = 1000
    crash: bool = False
    jobs: frozenset[JobId] | None = None


class Drain:
    """The jobs of one test's transaction."""

    def __init__(self, app: Rota, confinement: Confinement, resources: Resources) -> None:
        self._app = app
        self._confinement = confinement
        self._store = confinement.store
        self._testing = self._store.testing
        self._attempts = Attempts(app, self._store, resources)
        self._transaction = ""
        self._session = SessionId(0)
        self._after = JobId(0)
        self._gone: dict[JobId, EnqueuedJob] = {}

    # The transaction -----------------------------------------------------------------------------

    def begin(self, side: Side) -> Flow:
        """Check the connection once, and then that its transaction is still the same.

        Raises:
            ConfigError: There is no transaction, it is in another database than the app's, or it is
                not the one in which the test began.
        """
        if self._transaction:
            if (yield partial(side.run, self._testing.transaction())) != self._transaction:
                raise ConfigError(ENDED)
            return
        if (yield side.alone):
            raise ConfigError(NO_TRANSACTION)
        here = yield partial(side.run, self._testing.here())
        yield from self._same_database(side, here)
        if self._store.name == "sqlite":
            yield from self._file(side, begun=bool(here.transaction))
        elif not here.transaction:
            raise ConfigError(NO_TRANSACTION)
        else:
            yield from self._lanes(side)
        self._session = yield partial(side.run, self._testing.begin())
        # SQLite's has begun only now.
        self._transaction = here.transaction or (
            yield partial(side.run, self._testing.transaction())
        )

    def _same_database(self, side: Side, here: Here) -> Flow:
        if not here.database:
            # In memory, and so the connection's alone.
            return
        url = self._app.url
        home = self._testing.home or _databases.get(url)
        if not home:
            home = _databases[url] = (yield partial(side.outside, self._testing.here())).database
        if here.database != home:
            raise ConfigError(_other(self._store.name, here.database, url))

    def _file(self, side: Side, *, begun: bool) -> Flow:
        """Begin the transaction of a SQLite file, and learn which jobs were there before.

        Its rows do not say whose they are. Tables that are missing are made, and go with the
        rollback.
        """
        yield partial(side.run, self._testing.enter())
        if not (yield partial(side.run, self._store.schema_version())):
            for version, sql in self._store.migrations().items():
                yield partial(side.run, self._store.migrate(version, sql, after=0))
        elif not begun:
            self._after = yield partial(side.run, self._store.last_job())
        elif (yield partial(side.run, self._testing.shared())):
            self._after = yield partial(side.outside, self._store.last_job())

    def _lanes(self, side: Side) -> Flow:
        url = self._app.url
        lanes = {(task.options.queue, task.options.priority) for task in self._app.tasks.values()}
        missing = sorted(lane for lane in lanes if (url, *lane) not in _prepared)
        if missing:
            if not any(there[0] == url for there in _prepared):
                yield partial(side.outside, self._testing.clean())
            yield partial(side.outside, self._testing.prepare(missing))
            _prepared.update((url, *lane) for lane in missing)

    @property
    def _limited(self) -> bool:
        return self._confinement.isolated.limited

    # Looking -------------------------------------------------------------------------------------

    def jobs(self, side: Side) -> Flow:
        """All jobs that were enqueued in the transaction, in their order."""
        yield from self.begin(side)
        own = yield partial(side.run, self._testing.own(self._after))
        ids = sorted({*own, *self._confinement.isolated.orders})
        records = yield partial(side.run, self._store.get(ids))
        found = {record.id: EnqueuedJob.of(record, self._app.tasks) for record in records}
        return [job for _, job in sorted({**self._gone, **found}.items())]

    def args(self, job: JobId) -> Mapping[str, Any]:
        """The args of a job that the app has enqueued."""
        orders = self._confinement.isolated.orders
        if job not in orders:
            message = f"job {job} was not enqueued by the app since rota_test.use(...)"
            raise ConfigError(message)
        task, text = orders[job]
        return read_args(task, text, self._app.tasks)

    def travel(self, side: Side, seconds: float) -> Flow:
        """Set back what is stored of the transaction's jobs.

        Raises:
            ConfigError: Time does not go back.
        """
        if seconds <= 0:
            message = "travel: time only goes forward; say how long, travel(hours=2)"
            raise ConfigError(message)
        yield from self.begin(side)
        own = yield partial(side.run, self._testing.own(self._after))
        ids = sorted({*own, *self._confinement.isolated.orders})
        yield partial(side.run, self._testing.travel(ids, seconds))

    # Running -------------------------------------------------------------------------------------

    def run_one(
        self,
        side: Side,
        *,
        task: Task[..., Any, Any],
        args: Sequence[Any],
        named: dict[str, Any],
        raises: bool,
    ) -> Flow:
        """Enqueue one job and make one attempt of it.

        Raises:
            ConfigError: Its queue is paused, or it has run.
        """
        yield from self.begin(side)
        job = yield partial(side.enqueue, task, args, named)
        wanted = Wanted(self._after, jobs=[job], limits=False)
        yield partial(side.run, self._testing.stage(wanted, due=False))
        claimed = yield partial(side.run, self._testing.claim(self._session, wanted))
        if not claimed:
            message = (
                f"job {job} of {task.name!r} cannot run: its queue is paused, or a job with its unique key "
                "has run already"
            )
            raise ConfigError(message)
        [run] = yield from self._attempt(side, claimed, crash=False)
        _raise([run], raises=raises)
        return run

    def drain(self, side: Side, part: Part) -> Flow:
        """Run jobs until none is left; the attempts.

        Raises:
            ConfigError: There were more of them than the limit.
        """
        yield from self.begin(side)
        jobs = part.jobs
        if jobs is None and not part.recursive:
            jobs = frozenset((yield partial(side.run, self._testing.own(self._after))))
        resting: set[JobId] = set()
        runs: list[Run] = []
        now = part.due == "now"
        while True:
            wanted = Wanted(
                self._after, jobs, frozenset(resting), part.queues, limits=now and self._limited
            )
            claimed = yield partial(side.run, self._testing.claim(self._session, wanted))
            if not claimed:
                if (yield partial(side.run, self._testing.stage(wanted, due=now))):
                    continue
                if (yield partial(side.run, self._testing.decide())):
                    continue
                return runs
            claimed += yield from self._batch(side, claimed[0], wanted)
            if len(runs) >= part.limit:
                back = [released(job) for job in claimed]
                yield partial(side.run, self._store.settle(self._session, back))
                raise ConfigError(_too_many(part.limit, runs))
            came = yield from self._attempt(side, claimed, crash=part.crash)
            resting.update(run.job for run in came if run.move in {Move.SNOOZE, Move.AGAIN})
            runs += came
            if jobs is not None and part.recursive:
                jobs = jobs.union(*(run.successors for run in came))
            _raise(came, raises=part.raises)
            if not (yield partial(side.run, self._testing.waiting(wanted, due=now))):
                return runs

    def _batch(self, side: Side, job: ClaimedJob, wanted: Wanted) -> Flow:
        """The jobs that join this one in its batch."""
        task = self._app.tasks.get(job.task)
        if not isinstance(task, BatchTask) or task.batching.size == 1:
            return []
        others = Wanted(
            wanted.after, wanted.jobs, wanted.but, wanted.queues, job.task, wanted.limits
        )
        size = task.batching.size - 1
        return (yield partial(side.run, self._testing.claim(self._session, others, size)))

    def _attempt(self, side: Side, claimed: Sequence[ClaimedJob], *, crash: bool) -> Flow:
        runs = yield from self._attempts.make(side, self._session, claimed, crash=crash)
        self._keep(claimed, runs)
        return runs

    def _keep(self, claimed: Sequence[ClaimedJob], runs: Sequence[Run]) -> None:
        """Remember jobs of which nothing may be stored any more."""
        for job, run in zip(claimed, runs, strict=True):
            self._gone[job.id] = EnqueuedJob.ended(job, run.move, self._app.tasks)


def _raise(runs: Sequence[Run], *, raises: bool) -> None:
    """Raise what a handler has raised, unless it was an outcome."""
    for run in runs:
        if raises and run.error is not None and not isinstance(run.error, Outcome):
            raise run.error


def _other(backend: str, found: str, url: str) -> str:
    if backend == "postgres":
        # Its server has a number, which says little.
        found = found.partition("/")[2]
    return (
        f"the test's connection leads to the database {found!r}, and the app keeps its jobs in {shown(url)!r}: "
        "let the app use the tests' database, app.use(url) in conftest.py, or the test another connection"
    )


def _too_many(limit: int, runs: Sequence[Run]) -> str:
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.task] = counts.get(run.task, 0) + 1
    most = max(counts, key=lambda name: counts[name], default="")
    return (
        f"{limit} attempts were made, {counts.get(most, 0)} of them of {most!r}, and there are jobs left: does a "
        "handler enqueue its own task without end? If not, drain(limit=...) allows more; drain(recursive=False) "
        "leaves what handlers enqueue"
    )
