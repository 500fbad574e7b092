"""The audit: what people did on the dashboard, written once for all backends.

A deed is written in the transaction of what was done: neither is there without the other. What a
job carries out, it does in steps. Each step moves the deed's position on first, and only from where
it believes to be, in the transaction in which it changes jobs. So a worker that dies loses no step
and repeats none, and of two runs of the same job, which there are when a worker was taken for dead,
one goes on and the other one notices.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from rota.model.audit import KEPT, AuditRecord, Deed
from rota.model.job import LARGEST_ID, JobId
from rota.store.operation import Begin, Operation, Statement, Stepped, Steps

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, str]).decode


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a backend spells it; `read` is for moments."""

    add: Statement
    trim: Statement
    list: Statement
    find: Statement
    move: Statement
    count: Statement
    read: Callable[[Any], datetime]


class Place(NamedTuple):
    """A job's deed, how far it has come (`None`: not begun), and how many jobs it has changed."""

    deed: int
    position: str | None
    changed: int


class Audit:
    """The operations on the audit of one store."""

    def __init__(self, dialect: Dialect) -> None:
        self._sql = dialect

    def add(self, deed: Deed) -> Operation[int]:
        """Write a deed down; gives its id."""
        return Stepped("audit_add", self._add(deed), Begin.DURABLE)

    def recorded(self, operation: Operation[T], deed: Callable[[T], Deed]) -> Operation[T]:
        """The same operation, with the deed that its result makes, in one transaction."""
        steps = self._recorded(operation, deed)
        return Stepped(operation.name, steps, Begin.DURABLE, operation.then)

    def find(self, job: JobId) -> Operation[Place | None]:
        """What a job carries out; `None`: nothing, or the deed is too old to be kept."""
        return Stepped("audit_find", self._find(job), Begin.READING)

    def step(
        self, place: Place, further: str, operation: Operation[Collection[JobId]]
    ) -> Operation[int | None]:
        """Take a step of what a job carries out; how many jobs it has changed.

        `None`: nothing was done, since another run of the job has gone on, or the deed is not kept
        any more.
        """
        steps = self._step(place, further, operation)
        return Stepped(operation.name, steps, Begin.DURABLE, operation.then)

    def records(self, size: int, before: int | None = None) -> Operation[list[AuditRecord]]:
        """What people did, the newest first, from the one below `before` on."""
        return Stepped("audit_records", self._records(size, before), Begin.READING)

    def _add(self, deed: Deed) -> Steps[int]:
        [(number,)] = yield self._sql.add(
            who=deed.who,
            action=deed.action,
            what=_encode(deed.what).decode(),
            changed=deed.changed,
            job=deed.job,
        )
        yield self._sql.trim(newest=number, kept=KEPT)
        return int(number)

    def _recorded(self, operation: Operation[T], deed: Callable[[T], Deed]) -> Steps[T]:
        result = yield from operation.steps
        yield from self._add(deed(result))
        return result

    def _find(self, job: JobId) -> Steps[Place | None]:
        rows = yield self._sql.find(job=job)
        return Place(*rows[0]) if rows else None

    def _step(
        self, place: Place, further: str, operation: Operation[Collection[JobId]]
    ) -> Steps[int | None]:
        if not (yield self._sql.move(id=place.deed, before=place.position, further=further)):
            return None
        changed = len((yield from operation.steps))
        yield self._sql.count(id=place.deed, changed=changed)
        return changed

    def _records(self, size: int, before: int | None) -> Steps[list[AuditRecord]]:
        rows = yield self._sql.list(size=size, before=LARGEST_ID if before is None else before)
        return [
            AuditRecord(number, self._sql.read(at), who, action, _decode(what), changed, job)
            for number, at, who, action, what, changed, job in rows
        ]
