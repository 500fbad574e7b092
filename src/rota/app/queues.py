"""What this process knows of queues: what its code declares, and what was last read of the database.

Enqueueing needs only the declarations: the statement that stores a job looks into the database by
itself. A worker is told what the database says with each sign of life.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from rota.errors import ConfigError
from rota.model.durations import seconds
from rota.model.job import JobSpec
from rota.model.options import check_name
from rota.model.queue_settings import (
    FOREVER,
    NOTHING,
    QueueSettings,
    Retention,
    believed,
    retention,
)


class Kept(NamedTuple):
    """How many seconds a job stays once it has finished; `None`: until it is deleted."""

    completed: float
    cancelled: float
    discarded: float | None


class Keeps(dict[str, Kept]):
    """How long the jobs of one task stay, by the queue they ran in.

    A dictionary, since a worker asks for every job; what is not in it yet is worked out once.

    Attributes:
        retention: What the task says.
    """

    def __init__(self, retention: float | None, settings: Callable[[str], QueueSettings]) -> None:
        super().__init__()
        self.retention = retention
        self._settings = settings

    def retain(self, retention: float | None) -> None:
        """Keep jobs for so many seconds from now on, as if the task had said so."""
        self.retention = retention
        self.clear()

    def renew(self, settings: Callable[[str], QueueSettings]) -> None:
        """Work it out anew: something was said of a queue."""
        self._settings = settings
        self.clear()

    def __missing__(self, queue: str) -> Kept:
        own, settings = self.retention, self._settings
        holds = believed(QueueSettings(completed=own, cancelled=own), settings(queue))
        discarded = None if holds.discarded == FOREVER else holds.discarded
        self[queue] = kept = Kept(holds.completed or 0.0, holds.cancelled or 0.0, discarded)
        if settings is not self._settings:
            # Renewed meanwhile, by another thread.
            self.pop(queue, None)
        return kept


class Queues:
    """The queues of an app.

    Attributes:
        declared: What the code says, by queue.
        stored: What the database said last.
        default: What holds where neither says anything.
    """

    def __init__(self, keep: float) -> None:
        self.declared: dict[str, QueueSettings] = {}
        self.stored: Mapping[str, QueueSettings] = {}
        self.default = QueueSettings(completed=keep, cancelled=keep)
        self._keeps: list[Keeps] = []

    def keeps(self, retention: float | None) -> Keeps:
        """How long the jobs of a task with that retention stay; follows what is said from now on."""
        keeps = Keeps(retention, self.settings())
        self._keeps.append(keeps)
        return keeps

    def _renew(self) -> None:
        for keeps in self._keeps:
            keeps.renew(self.settings())

    def declare(
        self,
        queue: str,
        keep: Retention | None,
        max_attempts: int | None,
        timeout: float | timedelta | None,
        concurrency: int | None,
    ) -> None:
        """Note what the code says of a queue; see `Rota.queue`.

        Raises:
            ConfigError: A value cannot be used, or the queue was declared before.
        """
        check_name(queue, "queue")
        if queue in self.declared:
            message = f"queue {queue!r} is already declared; put all its settings in one place"
            raise ConfigError(message)
        self.declared = self.declared | {
            queue: QueueSettings(
                **retention(keep, "retention"),
                max_attempts=max_attempts,
                timeout=None if timeout is None else seconds(timeout, "timeout"),
                concurrency=concurrency,
            )
        }
        self._renew()

    def learn(self, stored: Mapping[str, QueueSettings]) -> bool:
        """Take what the database says now; whether that is news."""
        news = stored != self.stored
        if news:
            self.stored = stored
            self._renew()
        return news

    def forget(self) -> None:
        """Forget what the database said: from now on it is another one."""
        self.stored = {}
        self._renew()

    def settings(self) -> Callable[[str], QueueSettings]:
        """What holds for a queue, as things are now: later news do not change the answers."""
        stored, declared, default = self.stored, self.declared, self.default

        def of(queue: str) -> QueueSettings:
            return believed(stored.get(queue, NOTHING), declared.get(queue, NOTHING), default)

        return of

    def concurrency(self) -> dict[str, int]:
        """How many jobs one worker may run at once, of the queues for which that is said."""
        of = self.settings()
        every = {queue: of(queue).concurrency for queue in {*self.stored, *self.declared}}
        return {queue: most for queue, most in every.items() if most is not None}

    def cancelled(self) -> dict[str, float]:
        """How long the code lets jobs stay that are cancelled before they run, by queue."""
        every = {queue: said.cancelled for queue, said in self.declared.items()}
        return {queue: keep for queue, keep in every.items() if keep is not None}

    def discarded(self) -> dict[str, float]:
        """How long discarded jobs stay, of the queues in which they do not stay for ever."""
        of = self.settings()
        every = {queue: of(queue).discarded for queue in {*self.stored, *self.declared}}
        return {queue: keep for queue, keep in every.items() if keep not in {None, FOREVER}}

    def fill(self, spec: JobSpec) -> JobSpec:
        """The spec with what the code declares for its queue, to fall back on."""
        said = self.declared.get(spec.queue)
        if said is None:
            return spec
        return replace(
            spec,
            fallback_attempts=spec.fallback_attempts
            if said.max_attempts is None
            else said.max_attempts,
            fallback_timeout=spec.fallback_timeout if said.timeout is None else said.timeout,
        )
