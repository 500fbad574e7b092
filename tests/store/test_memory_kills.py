"""A worker or a stager that dies after any statement.

No signal is lost, none is taken twice, and no wait stays asleep.
"""

from collections.abc import Iterator
from itertools import count, product
from typing import TypeVar

from rota.model.job import ClaimedJob, JobId, SessionId
from rota.model.memory import FOR_EVER, Holder, Kind, Pause
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.operation import Operation, Stepped, Steps
from rota.store.protocol import Store
from tests.store.factories import claim, enqueue, open_session, record, settlement

T = TypeVar("T")

SIGNALS = range(5)
"""Before which of the operations the signal is sent."""

DEATHS = range(5)
"""In which of the operations the process dies."""

STATEMENTS = range(6)
"""After how many statements of it; most have fewer."""


class KilledError(Exception):
    """The process is gone, and what it had not committed."""


def killed(operation: Operation[T], after: int) -> Operation[T]:
    """An operation that is cut off after so many statements, or before its commit."""

    def steps() -> Steps[T]:
        inner = operation.steps
        request = next(inner)
        for number in count():
            if number == after:
                raise KilledError
            try:
                request = inner.send((yield request))
            except StopIteration as end:
                if number + 1 == after:
                    raise KilledError from None
                result: T = end.value
                return result
        raise AssertionError

    return Stepped(operation.name, steps(), operation.begin, operation.then)


class Life:
    """A job that waits for a signal, and the workers that it kills."""

    def __init__(
        self, store: Store, connection: Connection, *, told: int, death: int, after: int
    ) -> None:
        self._store, self._connection = store, connection
        self._told, self._death, self._after = told, death, after
        self._number = 0
        self._signalled = False
        [self.job] = enqueue(store, connection)
        self._session = SessionId(0)

    def live(self) -> None:
        """Run it to its end."""
        self._session = open_session(self._store, self._connection)
        while record(self._store, self._connection, self.job).state is not State.COMPLETED:
            assert self._number < 30, "the job sleeps for ever"
            try:
                self._do(self._store.stage(100))
                for job in claim(self._store, self._connection, self._session):
                    assert job.id == self.job
                    self._run(job)
            except KilledError:
                self._connection.run(self._store.close_session(self._session))
                self._session = open_session(self._store, self._connection)

    def _run(self, job: ClaimedJob) -> None:
        holder = Holder(self._session, job.lease, job.id)
        memory = self._connection.run(self._store.memory.load([job.id])).get(job.id, [])
        value = next((row.value for row in memory if row.kind is Kind.ANSWER), None)
        if value is None:
            answer = self._do(self._store.memory.answer(holder, "go", "go", over=False))
            assert answer is not None
            value = answer.value
        if value is None:
            pauses = (Pause(Kind.WAIT, "go", FOR_EVER, "go"),)
            end = settlement(job, Move.SNOOZE, delay=FOR_EVER, pauses=pauses)
        else:
            end = settlement(job, Move.COMPLETE, result=value)
        assert self._do(self._store.settle(self._session, [end])) == []

    def _do(self, operation: Operation[T]) -> T:
        """Do the next thing, after the signal if it is time.

        It is done to its end, unless it is the last thing of this process.
        """
        if self._number >= self._told and not self._signalled:
            self._signalled = True
            self._connection.run(self._store.memory.signal(self.job, "go", '"x"', None))
        self._number += 1
        if self._number == self._death + 1:
            return self._connection.run(killed(operation, self._after))
        return self._connection.run(operation)


def lives() -> Iterator[tuple[int, int, int]]:
    """All ways in which it can go."""
    return product(SIGNALS, DEATHS, STATEMENTS)


def test_a_death_after_any_statement(store: Store, connection: Connection) -> None:
    """Whenever the signal comes, and whoever dies: the job ends with it, once."""
    for told, death, after in lives():
        life = Life(store, connection, told=told, death=death, after=after)
        life.live()
        found = record(store, connection, life.job)
        assert found.result == '"x"', (told, death, after)
        rows = connection.run(store.memory.load([JobId(life.job)]))[life.job]
        answers = [row for row in rows if row.kind is Kind.ANSWER]
        assert len(answers) == 1, (told, death, after)
