"""What one job remembers, in both stores, against a small oracle.

It has steps, sleeps, waits and signals, whatever happens in between.

The oracle has a list of steps, one of letters in the box and one of answers; it knows nothing of
rows, marks, rings and snapshots. On PostgreSQL signals are also sent in transactions that stay open
while the job goes on.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rota.model.job import ClaimedJob, LeaseId
from rota.model.memory import Holder, Kind, Pause, records
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.fixtures.large import LARGE
from tests.model.test_machine import ENDS, SETTINGS
from tests.store.factories import (
    NOBODY,
    claim,
    enqueue,
    open_session,
    record,
    run_inside,
    settle,
    settlement,
)

FAR = 600.0
"""Seconds for which a job sleeps that is not told anything."""

NAMES = ("go", "stop")
WAITING = {State.SCHEDULED, State.RETRYABLE}

EXAMPLES = {"sqlite": 1000, "postgres": 100} if LARGE else {"sqlite": 60, "postgres": 6}
"""A rule on PostgreSQL takes twenty times as long."""

names = st.sampled_from(NAMES)


@dataclass
class Letter:
    """A signal that was sent; of several with one `ref` one counts."""

    number: int
    name: str
    ref: str

    @property
    def value(self) -> str:
        return str(self.number)


@dataclass
class Expected:
    """What the oracle knows of the job."""

    state: State = State.AVAILABLE
    due: bool = False
    waits: set[str] = field(default_factory=set)
    steps: list[str] = field(default_factory=list)
    box: list[Letter] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    answers: list[tuple[str, str | None]] = field(default_factory=list)
    began: int = 0

    def comes(self, letter: Letter) -> None:
        """A signal is there for all to see."""
        if letter.number < self.began or letter.ref in self.taken:
            return
        if all(other.ref != letter.ref for other in self.box):
            self.box = sorted([*self.box, letter], key=lambda one: one.number)
        self.due = self.due or letter.name in self.waits

    def oldest(self, name: str) -> Letter | None:
        return next((letter for letter in self.box if letter.name == name), None)

    def stops_waiting(self, state: State, *, due: bool = False) -> None:
        self.state, self.due, self.waits = state, due, set()


class Machine(RuleBasedStateMachine):
    """What can happen to a job that remembers."""

    def __init__(self, store: Store, connection: Connection) -> None:
        super().__init__()
        self.store, self.connection = store, connection
        self.expected = Expected()
        self.number = 0
        self.holder = Holder(open_session(store, connection), LeaseId(0), NOBODY)
        self.old: list[Holder] = []
        self.open: tuple[Any, list[Letter]] | None = None

    def run(self, operation: Any) -> Any:
        return self.connection.run(operation)

    def teardown(self) -> None:
        """Nothing is left of the job for the next example."""
        self.close(commit=True)
        if self.expected.state is State.RUNNING:
            self.end(Move.COMPLETE)
        assert self.run(self.store.delete([self.job])) == [self.job]
        assert self.run(self.store.memory.load([self.job])) == {}

    @initialize()
    def begin(self) -> None:
        [self.job] = enqueue(self.store, self.connection, max_attempts=1000)
        self.claim()

    # Runs ------------------------------------------------------------------------------------

    @precondition(lambda self: self.expected.state is State.AVAILABLE)
    @rule()
    def claim(self) -> None:
        [job] = claim(self.store, self.connection, self.holder.session)
        self.holder = Holder(self.holder.session, job.lease, self.job)
        self.expected.state = State.RUNNING

    @precondition(lambda self: self.expected.state is State.RUNNING)
    @rule(name=names)
    def remember(self, name: str) -> None:
        assert self.run(self.store.memory.remember(self.holder, name, "1"))
        self.expected.steps.append(name)

    @precondition(lambda self: self.expected.state is State.RUNNING)
    @rule(name=names, over=st.booleans())
    def answer(self, name: str, *, over: bool) -> None:
        wait = f"{name}#{len(self.expected.answers) + 1}"
        found = self.run(self.store.memory.answer(self.holder, wait, name, over=over))
        letter = self.expected.oldest(name)
        assert found is not None
        assert found.ended == (over or letter is not None)
        assert found.value == (letter.value if letter else None)
        if letter:
            self.expected.box.remove(letter)
            self.expected.taken.add(letter.ref)
        if found.ended:
            self.expected.answers.append((wait, found.value))

    @precondition(lambda self: self.expected.state is State.RUNNING)
    @rule(waits=st.sets(names), asleep=st.booleans())
    def fall_asleep(self, waits: set[str], *, asleep: bool) -> None:
        pauses = [Pause(Kind.WAIT, name, FAR, name) for name in sorted(waits)]
        if asleep:
            pauses.append(Pause(Kind.SLEEP, "sleep", FAR))
        self.end(Move.SNOOZE, delay=FAR, pauses=tuple(pauses))
        self.expected.stops_waiting(State.SCHEDULED)
        self.expected.waits = waits
        self.expected.due = any(self.expected.oldest(name) for name in waits)

    @precondition(lambda self: self.expected.state is State.RUNNING)
    @rule(how=st.sampled_from((Move.RETRY, Move.RETRY, Move.AGAIN, *ENDS, None)))
    def stop(self, how: Move | None) -> None:
        match how:
            case None:
                self.die()
            case Move.RETRY:
                self.end(how)
                self.expected.stops_waiting(State.RETRYABLE, due=True)
            case Move.AGAIN:
                self.end(how, remembers=True)
                self.number += 1
                self.expected = Expected(State.SCHEDULED, due=True, began=self.number)
            case _:
                self.end(how)
                self.expected.stops_waiting(ENDS[how])

    def die(self) -> None:
        self.run(self.store.close_session(self.holder.session))
        self.old.append(self.holder)
        session = open_session(self.store, self.connection)
        self.holder = self.holder._replace(session=session)
        self.expected.stops_waiting(State.AVAILABLE)

    @precondition(lambda self: self.old)
    @rule(data=st.data())
    def come_too_late(self, data: st.DataObject) -> None:
        holder = data.draw(st.sampled_from(self.old))
        assert not self.run(self.store.memory.remember(holder, "late", "1"))
        assert self.run(self.store.memory.answer(holder, "late", "go", over=True)) is None

    def end(self, move: Move, **rest: Any) -> None:
        job = ClaimedJob(
            self.job, self.holder.lease, "shop.send", "{}", "default", 0, 1, 5, None, 0.0
        )
        end = settlement(job, move, **rest)
        assert settle(self.store, self.connection, self.holder.session, end) == []
        self.old.append(self.holder)

    # Around it -------------------------------------------------------------------------------

    @rule(name=names, told=st.sampled_from((None, None, "once")))
    def signal(self, name: str, told: str | None) -> None:
        letter = self.letter(name, told)
        state = self.run(self.store.memory.signal(self.job, name, letter.value, told))
        assert state is self.expected.state
        if not state.finished:
            self.expected.comes(letter)

    @precondition(lambda self: self.store.name == "postgres")
    @rule(name=names)
    def signal_in_a_long_transaction(self, name: str) -> None:
        if self.open is None:
            self.open = self.store.transaction(), []
        transaction, sent = self.open
        letter = self.letter(name, None)
        operation = self.store.memory.signal(self.job, name, letter.value, None)
        state = run_inside(self.store, transaction, operation)
        assert state is self.expected.state
        if not state.finished:
            sent.append(letter)

    @precondition(lambda self: self.open is not None)
    @rule(commit=st.booleans())
    def close(self, *, commit: bool) -> None:
        if self.open is None:
            return
        (transaction, sent), self.open = self.open, None
        if not commit:
            transaction.rollback()
            return
        transaction.commit()
        for letter in sent:
            self.expected.comes(letter)

    @precondition(lambda self: self.expected.state in WAITING)
    @rule()
    def stage(self) -> None:
        due = self.expected.due
        assert not due or self.run(self.store.due()) == 0
        assert self.run(self.store.stage(10)).staged == due
        if due:
            self.expected.stops_waiting(State.AVAILABLE)

    @precondition(lambda self: self.expected.state in WAITING or self.expected.state.finished)
    @rule()
    def retry(self) -> None:
        assert self.run(self.store.retry([self.job])) == [self.job]
        self.expected.stops_waiting(State.AVAILABLE)

    @precondition(lambda self: self.store.name == "postgres")
    @rule()
    def tidy(self) -> None:
        """Turn the rings, and empty what was left."""
        self.run(self.store.tidy())

    def letter(self, name: str, told: str | None) -> Letter:
        self.number += 1
        return Letter(self.number, name, f"{name} {told or self.number}")

    # What must be so -------------------------------------------------------------------------

    @invariant()
    def it_remembers_what_is_expected(self) -> None:
        rows = self.run(self.store.memory.load([self.job])).get(self.job, [])
        assert [row.name for row in rows if row.kind is Kind.STEP] == self.expected.steps
        answers = [(row.name, row.value) for row in rows if row.kind is Kind.ANSWER]
        assert answers == self.expected.answers
        unread = sorted(one.result or "" for one in records(rows) if one.state == "unread")
        assert unread == sorted(letter.value for letter in self.expected.box)

    @invariant()
    def it_is_where_it_is_expected(self) -> None:
        assert record(self.store, self.connection, self.job).state is self.expected.state


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tidying turns the rings."""
    monkeypatch.setattr("rota.store.postgres.clearing.REST", 0.0)
    for ring in ("LOG", "LEASE", "MEMORY", "FINISHED"):
        monkeypatch.setattr(f"rota.store.postgres.rings.{ring}_SIZE", 0)


def test_memory_is_as_expected(store: Store, connection: Connection) -> None:
    """Steps are kept, each signal ends one wait, and no job sleeps on once told what it awaits."""
    searching = settings(SETTINGS, max_examples=EXAMPLES[store.name], stateful_step_count=25)
    # The annotation asks for a class; a function that makes a machine is documented, too.
    machine: Any = lambda: Machine(store, connection)  # noqa: E731
    run_state_machine_as_test(machine, settings=searching)
