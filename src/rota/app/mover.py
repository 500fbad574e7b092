"""Moving the jobs of a key that wait to the shard where the key belongs by now.

No transaction reaches across two databases, so a job moves by a transfer (`rota.model.transfer`),
in three: the source lets jobs go and stores the transfer instead, the target stores the jobs once
and for all, the source forgets the transfer. Whoever is killed between two of them leaves a
transfer, which the next mover of the key finishes first.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from rota.app.shard import Shard
from rota.errors import ConfigError, StoreUnavailable
from rota.model.enqueued import Placing
from rota.model.job import JobId, JobRecord
from rota.model.states import State
from rota.model.transfer import QUEUE, TASK, JobOnItsWay, Transfer, read_transfer

BATCH = 500
BATCH_CHARACTERS = 4_000_000
"""Jobs of one transfer, and characters of their args, at the most. One job may have more."""

WAITING = (State.SCHEDULED, State.RETRYABLE, State.AVAILABLE)


@dataclass(frozen=True, slots=True)
class Moved:
    """What a call of `Shards.move` did.

    Attributes:
        jobs: How many jobs it stored in their new shard.
        joined: How many it did not store, because another job there has their unique key.
        running: How many jobs of the key are still running elsewhere; those that come back wait
            there.
    """

    jobs: int = 0
    joined: int = 0
    running: int = 0

    def __add__(self, other: "Moved") -> "Moved":
        return Moved(
            self.jobs + other.jobs, self.joined + other.joined, self.running + other.running
        )


class Mover:
    """Moves the jobs of one key.

    Args:
        shards: By their names.
        key: Whose jobs they are.
        target: Where the key belongs.
        belongs: Whether a job is one of the key's.
    """

    def __init__(
        self,
        shards: Mapping[str, Shard],
        key: str,
        target: str,
        belongs: Callable[[JobRecord | JobOnItsWay], bool],
    ) -> None:
        self._shards = shards
        self._key = key
        self._target = target
        self._belongs = belongs

    def move(self) -> Moved:
        """Finish what others began, then move what waits elsewhere; what runs there is counted.

        Raises:
            StoreUnavailable: A shard is away. If it is the target, nothing has begun; else all
                others were done.
        """
        # Nothing leaves its shard as long as the target cannot be reached.
        target = self._shards[self._target].database
        try:
            target.run(target.store.last_job())
        except StoreUnavailable as error:
            message = f"shard {self._target}: {error}; nothing was moved"
            raise StoreUnavailable(message) from error
        done = Moved()
        away: dict[str, StoreUnavailable] = {}
        for steps in (self._finish, self._move_from):
            for name in self._shards:
                if name not in away:
                    try:
                        done += steps(name)
                    except StoreUnavailable as error:
                        away[name] = error
        for name, why in away.items():
            message = f"shard {name}: {why}; not all waiting jobs there were moved; run it again"
            raise StoreUnavailable(message) from why
        return done

    def _finish(self, source: str) -> Moved:
        """Finish the transfers of the key from this shard."""
        jobs, done = self._shards[source].jobs, Moved()
        # One that was retried by hand is available.
        found = [
            record
            for state in (State.SCHEDULED, State.AVAILABLE)
            for record in jobs.iterate(task=TASK, queue=QUEUE, state=state)
        ]
        for record in sorted(found, key=lambda record: record.id):
            transfer = self._read(source, record)
            if transfer.key == self._key:
                done += self._put(source, record.id, transfer)
        return done

    def _move_from(self, source: str) -> Moved:
        """Move all that waits in this shard, and what begins to wait meanwhile."""
        if source == self._target:
            return Moved()
        database, done = self._shards[source].database, Moved()
        moving = True
        while moving:
            moving = False
            for batch in _batches(self._found(source, WAITING)):
                transfer = Transfer(secrets.token_hex(16), self._key, source, self._target)
                taken = database.run(database.store.transfers.take(batch, transfer, self._belongs))
                if taken is not None:
                    done += self._put(source, *taken)
                    moving = True
        return done + Moved(running=len(self._found(source, (State.RUNNING,))))

    def _found(self, source: str, states: Iterable[State]) -> list[tuple[JobId, int]]:
        """The key's jobs in these states, by id, with the sizes of their args."""
        jobs = self._shards[source].jobs
        found = {
            record.id: len(record.args)
            for state in states
            for record in jobs.iterate(state=state)
            if self._belongs(record)
        }
        return sorted(found.items())

    def _put(self, source: str, job: JobId, transfer: Transfer) -> Moved:
        """Store a transfer in its target, unless that was done before, and forget it in its source."""
        if transfer.target not in self._shards:
            message = f"job {source}:{job} is a transfer to shard {transfer.target!r}, which no longer exists"
            raise ConfigError(message)
        target, database = self._shards[transfer.target].database, self._shards[source].database
        placed = target.run(target.store.transfers.put(transfer)) or []
        database.run(database.store.delete([job]))
        new = sum(each.placing is Placing.CREATED for each in placed)
        return Moved(new, len(placed) - new)

    @staticmethod
    def _read(source: str, record: JobRecord) -> Transfer:
        try:
            return read_transfer(record.args)
        except ConfigError as error:
            message = f"job {source}:{record.id}: {error}"
            raise ConfigError(message) from error


def _batches(jobs: Iterable[tuple[JobId, int]]) -> Iterator[list[JobId]]:
    """The ids of jobs, cut into transfers."""
    batch: list[JobId] = []
    characters = 0
    for job, size in jobs:
        if batch and (len(batch) == BATCH or characters + size > BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(job)
        characters += size
    if batch:
        yield batch
