"""Cron in a database: the operations, written once for all backends.

The model. Each entry has a mark: up to where its due times have been dealt with, and when the next
one is. A worker that finds a due time has come locks the entry, appends the jobs and moves the mark
on in one transaction, so that each due time has exactly one job, whichever worker dies. There is no
leader; the second worker finds the entry locked or the mark moved. Times are the database's.

What can fail: a machine may not know an entry's time zone, or run an older Rota that cannot read
its expression or its options. Such an entry is left to other machines, and the others go on.

An entry's unique job may have to wait for a transaction that is about to store one of the same key,
and that may stay open for long. The entry is then given up for this time, as if it were locked:
upkeep waits for no producer. An entry that could not be dealt with is put aside: it stays due, and
comes after all others the next time.

A change wakes no worker: workers ask once a second when the next entry is due, and a transaction
that notified could not be prepared (two-phase commit).

A backend says how its statements, moments and lists look, in a `Dialect`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from rota.cron.entry import CronEntry, CronRecord, Missed
from rota.cron.jobs import job, options_of
from rota.cron.plan import in_zone, next_due, plan
from rota.errors import ConfigError, StoreError
from rota.model.enqueued import Enqueued, Placed, Placing
from rota.model.job import JobId, JobSpec, Order, SessionId
from rota.store.operation import Begin, Operation, Statement, Stepped, Steps, Then

ENTRIES = 200
"""Entries that one transaction deals with."""

HELD = 40
"""Entries that one transaction gives up: each costs some milliseconds, for which the jobs that it has
made wait for its commit."""

JOBS = 500
"""Jobs that one transaction makes of an entry that has missed many of its due times."""


Enqueue = Callable[[Order], Operation[Enqueued]]
"""`Store.enqueue`."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a backend spells it.

    `write` and `read` are for moments, `many` for lists. `forget` removes what dead workers
    declared, where `worker` does not. `attempt` comes before an entry's unique jobs are stored, and
    `stored` after it; where a key is not to be had now that raises `taken`, and `give_up` undoes
    what was begun.
    """

    entries: Statement
    lock: Statement
    take: Statement
    mark: Statement
    add: Statement
    change: Statement
    hold: Statement
    declared: Statement
    pause: Statement
    remove: Statement
    worker: Statement
    forget: Statement | None
    attempt: Sequence[Statement]
    stored: Statement | None
    give_up: Statement | None
    taken: type[StoreError]
    write: Callable[[datetime], object]
    read: Callable[[Any], datetime]
    many: Callable[[Sequence[Any]], object]


class Made(NamedTuple):
    """What was done about an entry whose due time had come.

    `due` are the due times that got a job, and `jobs` their ids; those of them that are `new` did
    not replace one that was there. `missed` is the first due time at which no worker was there, if
    it got none. `error` says why nothing could be done on this machine.
    """

    entry: str
    due: tuple[datetime, ...] = ()
    jobs: tuple[JobId, ...] = ()
    missed: datetime | None = None
    error: str | None = None
    task: str = ""
    queue: str = ""
    new: tuple[JobId, ...] = ()


class Round(NamedTuple):
    """What one call has made, and the ids of the entries that come last in the next one."""

    made: list[Made]
    aside: list[int]


class Ran(NamedTuple):
    """What became of a job of an entry that was asked for now."""

    spec: JobSpec
    stored: Enqueued


class _Row(NamedTuple):
    """An entry as it was read, with its mark and the time."""

    record: CronRecord
    id: int
    seq: int
    since: datetime
    due: datetime | None
    last: datetime | None
    now: datetime


class Cron:
    """The operations on entries, of one store. Those of people may run in their transactions."""

    def __init__(self, dialect: Dialect, enqueue: Enqueue) -> None:
        self._sql = dialect
        self._enqueue = enqueue

    # People's --------------------------------------------------------------------------------

    def entries(self) -> Operation[list[CronRecord]]:
        """All entries, by name."""
        return Stepped("cron_entries", self._entries(), Begin.READING)

    def add(self, entry: CronEntry, since: datetime | None = None) -> Operation[bool]:
        """Store an entry of no code; false if there is one of that name.

        Its due times count from `since` on, else from now.
        """
        return Stepped("cron_add", self._add(entry, None, since), Begin.DURABLE)

    def change(self, name: str, changes: Mapping[str, Any]) -> Operation[bool]:
        """Change fields of an entry; false if there is none of that name.

        With other times, its due times count from now on: those up to now are not made up.
        """
        return Stepped("cron_change", self._change(name, changes), Begin.DURABLE)

    def remove(self, name: str) -> Operation[bool]:
        """Remove an entry; false if there is none of that name."""
        return Stepped("cron_remove", self._remove(name), Begin.DURABLE)

    def pause(self, name: str) -> Operation[bool | None]:
        """Make no jobs of an entry; false if it was paused, `None` if there is none."""
        return Stepped("cron_pause", self._pause(name, paused=True), Begin.DURABLE)

    def resume(self, name: str) -> Operation[bool | None]:
        """Make jobs again, of due times from now on; false if it was not paused."""
        return Stepped("cron_resume", self._pause(name, paused=False), Begin.DURABLE)

    def run(self, name: str) -> Operation[Ran | None]:
        """Make a job of an entry now, whatever its times; `None` if there is no such entry."""
        return Stepped("cron_run", self._run(name), Begin.DURABLE, Then.WORKERS)

    # Workers' --------------------------------------------------------------------------------

    def declare(
        self, session: SessionId, entries: Sequence[CronEntry], *, again: bool = False
    ) -> Operation[list[str]]:
        """Note what a worker's code declares; the names of entries that are new or have changed.

        An entry whose declaration is what it was stays as it is: changes that were made by hand
        hold until the code says something else. `again`: the worker has a new session, and writes
        no entries, since newer code may have done so after it started.
        """
        steps = self._declare(session, entries, again=again)
        return Stepped("cron_declare", steps, Begin.DURABLE)

    def make(
        self, size: int = ENTRIES, jobs: int = JOBS, aside: Sequence[int] = ()
    ) -> Operation[Round]:
        """Make the jobs of entries whose due time has come: so many entries, so many jobs of each.

        Entries that another worker has locked are passed over. `aside` has the ids of entries that
        could not be dealt with before: they come after all others.
        """
        return Stepped("cron_make", self._make(size, jobs, aside), Begin.DURABLE)

    # Steps -----------------------------------------------------------------------------------

    def _entries(self) -> Steps[list[CronRecord]]:
        return [row.record for row in (yield from self._read(None))]

    def _read(self, names: Sequence[str] | None) -> Steps[list[_Row]]:
        rows = yield self._sql.entries(names=None if names is None else self._sql.many(names))
        return [self._row(row) for row in rows]

    def _add(
        self, entry: CronEntry, declaration: str | None, since: datetime | None
    ) -> Steps[bool]:
        rows = yield self._sql.add(declaration=declaration, **_columns(entry))
        if not rows:
            return False
        [(number, now)] = rows
        yield from self._mark(number, 1, entry, since or self._sql.read(now), None)
        return True

    def _change(
        self, name: str, changes: Mapping[str, Any], declaration: str | None = None
    ) -> Steps[bool]:
        if not (yield self._sql.hold(names=self._sql.many([name]))):
            return False
        # Read now that it is locked: jobs may have been made meanwhile.
        [row] = yield from self._read([name])
        old = row.record.entry
        new = replace(old, **changes)
        yield self._sql.change(entry=row.id, declaration=declaration, **_columns(new))
        if not new.same_times(old):
            yield from self._mark(row.id, row.seq + 1, new, row.now, row.last)
        return True

    def _remove(self, name: str) -> Steps[bool]:
        return bool((yield self._sql.remove(name=name)))

    def _pause(self, name: str, *, paused: bool) -> Steps[bool | None]:
        if not (yield self._sql.hold(names=self._sql.many([name]))):
            return None
        if not (yield self._sql.pause(name=name, paused=paused)):
            return False
        if not paused:
            [row] = yield from self._read([name])
            yield from self._mark(row.id, row.seq + 1, row.record.entry, row.now, row.last)
        return True

    def _run(self, name: str) -> Steps[Ran | None]:
        rows = yield from self._read([name])
        if not rows:
            return None
        [row] = rows
        entry, now = replace(row.record.entry, jitter=0.0), row.now.replace(microsecond=0)
        spec, args = job(entry, now, now)
        return Ran(spec, (yield from self._store(entry, spec, [args])))

    def _declare(
        self, session: SessionId, entries: Sequence[CronEntry], *, again: bool
    ) -> Steps[list[str]]:
        wanted = {entry.name: entry for entry in sorted(entries, key=lambda entry: entry.name)}
        names = self._sql.many(list(wanted))
        if self._sql.forget is not None:
            yield self._sql.forget()
        yield self._sql.worker(session=session, names=names)
        if again:
            return []
        known = {row[0]: row[1] for row in (yield self._sql.declared(names=names))}
        changed = []
        for name, entry in wanted.items():
            declaration = entry.declaration
            if known.get(name) == declaration:
                continue
            added = name not in known and (yield from self._add(entry, declaration, None))
            if not added:
                fields = {field: getattr(entry, field) for field in entry.__dataclass_fields__}
                yield from self._change(name, fields, declaration)
            changed.append(name)
        return changed

    def _make(self, size: int, jobs: int, aside: Sequence[int]) -> Steps[Round]:
        locked = [row[0] for row in (yield self._sql.lock(size=size, aside=self._sql.many(aside)))]
        if not locked:
            return Round([], list(aside))
        rows = map(self._row, (yield self._sql.take(entries=self._sql.many(locked))))
        taken = {row.id: row for row in rows}
        made: list[Made] = []
        # In the order in which they were put aside.
        left = dict.fromkeys(aside)
        held = 0
        for entry in filter(taken.__contains__, locked):
            done = yield from self._make_jobs(taken[entry], jobs)
            left.pop(entry, None)
            if done is None or done.error is not None:
                left[entry] = None
            if done is not None:
                made.append(done)
            elif (held := held + 1) == HELD:
                break
        return Round(made, list(left))

    def _make_jobs(self, row: _Row, most: int) -> Steps[Made | None]:
        """Make the jobs of a locked entry; `None` if another transaction is about to use its key."""
        entry = row.record.entry
        try:
            planned = plan(entry, row.since, row.now, most)
            wanted = [job(entry, due, row.now) for due in planned.make]
        except ConfigError as error:
            return Made(entry.name, error=str(error))
        unique = any(spec.unique is not None for spec, _ in wanted)
        stored: list[Placed] = []
        try:
            if unique:
                for statement in self._sql.attempt:
                    yield statement()
            for spec, group in groupby(wanted, key=itemgetter(0)):
                stored += (yield from self._store(entry, spec, [args for _, args in group])).placed
            if unique and self._sql.stored is not None:
                yield self._sql.stored()
        except self._sql.taken:
            if not unique:
                # What would be undone is another entry's.
                raise
            if self._sql.give_up is not None:
                yield self._sql.give_up()
            return None
        # Of several due times that led to one job, the last one is what it knows of.
        due = {
            job: moment
            for (job, placing), moment in zip(stored, planned.make, strict=True)
            if placing is not Placing.SKIPPED
        }
        last = max(due.values(), default=row.last)
        yield from self._write_mark(row.id, row.seq + 1, planned.since, planned.due, last)
        return Made(
            entry.name, tuple(due.values()), tuple(due), planned.missed,
            task=entry.task, queue=entry.queue, new=tuple(job for job, placing in stored if placing is Placing.CREATED),
        )  # fmt: skip

    def _store(self, entry: CronEntry, spec: JobSpec, args: Sequence[str]) -> Steps[Enqueued]:
        """Store jobs of an entry, which all have its keys."""
        keys = options_of(entry).keys(len(args))
        return (yield from self._enqueue(Order(spec, args, keys)).steps)

    def _mark(
        self, entry_id: int, seq: int, entry: CronEntry, since: datetime, last: datetime | None
    ) -> Steps[None]:
        yield from self._write_mark(entry_id, seq, since, next_due(entry, since), last)

    def _write_mark(
        self, entry: int, seq: int, since: datetime, due: datetime | None, last: datetime | None
    ) -> Steps[None]:
        write = self._sql.write
        yield self._sql.mark(
            entry=entry,
            seq=seq,
            since=write(since),
            due=None if due is None else write(due),
            last=None if last is None else write(last),
        )

    def _row(self, row: Sequence[Any]) -> _Row:
        read = self._sql.read
        entry = CronEntry(
            name=row[0],
            expression=row[1],
            task=row[2],
            timezone=row[3],
            missed=Missed(row[4]),
            jitter=row[5],
            args=row[6],
            due=row[7],
            queue=row[8],
            priority=row[9],
            max_attempts=row[10],
            timeout=row[11],
            options=row[12],
        )
        due, last = (None if moment is None else read(moment) for moment in row[16:18])
        record = CronRecord(
            entry=entry,
            paused=bool(row[13]),
            declared=bool(row[14]),
            undeclared=bool(row[15]),
            due=None if due is None else in_zone(due, entry),
            last=None if last is None else in_zone(last, entry),
        )
        return _Row(record, row[18], row[19], read(row[20]), due, last, read(row[21]))


def _columns(entry: CronEntry) -> dict[str, object]:
    """An entry as the parameters of a statement."""
    return {
        "name": entry.name,
        "expression": entry.expression,
        "timezone": entry.timezone,
        "missed": entry.missed.value,
        "jitter": entry.jitter,
        "task": entry.task,
        "args": entry.args,
        "parameter": entry.due,
        "queue": entry.queue,
        "priority": entry.priority,
        "max_attempts": entry.max_attempts,
        "timeout": entry.timeout,
        "options": entry.options,
    }
