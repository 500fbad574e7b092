"""Workers, upkeep and users take turns after each statement, and die anywhere.

Each node is released once, and flows end.

Each has a connection of its own, and its transactions stay open while others go on. Who waits for a
lock for longer than a moment dies as well. Whose turn it is comes from a seed. (Where a flow is
stopped, or one failure ends a map, it is not known what has run by then.)
"""

from collections import Counter
from collections.abc import Callable, Generator
from random import Random
from typing import Any

import pytest

from rota.errors import StoreUnavailable
from rota.model.flow import Graft
from rota.model.headers import node_of
from rota.model.job import ClaimedJob
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store import deciding
from rota.store.membership import arrived
from rota.store.operation import Apart, Begin, Operation, Rows, Stepped
from rota.store.postgres.connection import BEGIN, PostgresConnection
from rota.store.postgres.deciding import PostgresGround
from rota.store.postgres.failures import LockTimeout
from tests.fixtures.large import LARGE
from tests.store.factories import open_session, settlement
from tests.store.flowing import Flowing, node
from tests.store.postgres.database import Database
from tests.store.test_flow_kills import PLOTS, Plot

SEEDS = range(6 if LARGE else 2)

DEATHS = 6
"""How many die in one flow, at most."""

LONGEST = 5000
"""Turns after which a flow goes on for ever."""

Turns = Generator[None, None, Any]
"""Yields after each statement."""


def by_turns(connection: PostgresConnection, operation: Operation[Any]) -> Turns:
    """Run an operation, one statement a turn; its commit is one, too."""
    if not isinstance(operation, Stepped):
        return connection.run(operation)
    begin = BEGIN.get(operation.begin)
    if begin is not None:
        connection.raw().execute(begin, prepare=False)
    steps = operation.steps
    try:
        request = next(steps)
        while True:
            if isinstance(request, Apart):
                given: Rows = [((yield from by_turns(connection, request.operation)),)]
            else:
                given = connection._execute(request)
                yield
            request = steps.send(given)
    except StopIteration as end:
        if begin is not None:
            connection.raw().execute("COMMIT", prepare=False)
        return end.value


class Stage:
    """A flow, and those who take turns."""

    def __init__(self, db: Database, plot: Plot, seed: int) -> None:
        self.db, self.plot, self.random = db, plot, Random(seed)
        self.flow = Flowing(db.store, db.own, *plot.nodes)
        self.moves = dict(plot.moves)
        self.ran = Counter[str]()
        self.retried = False
        self.died = 0

    @property
    def over(self) -> bool:
        """Whether the flow has come to the end of its plot."""
        return self.flow.state.ended and (self.retried or not self.plot.retry)

    def play(self) -> None:
        """Let all take turns until the flow has ended."""
        parts: list[Callable[[PostgresConnection], Turns]]
        parts = [self.work, self.work, self.overlook, self.retry]
        actors = [Actor(self.db, part) for part in parts]
        try:
            for number in range(LONGEST):
                if number % 20 == 0 and self.over:
                    return
                actor = self.random.choice(actors)
                dies = self.died < DEATHS and self.random.random() < 0.03
                if dies or not actor.turn():
                    self.died += 1
                    actor.die()
            raise AssertionError(f"it goes on for ever: {self.flow.states}")
        finally:
            for actor in actors:
                actor.end()
        for actor in actors:
            actor.die()

    def work(self, connection: PostgresConnection) -> Turns:
        """Claim, settle, and look what follows, again and again."""
        session = open_session(self.db.store, self.db.own)
        ends: list[Settlement] = []
        try:
            while True:
                claim = self.db.store.claim(session, ("default",), self.random.choice((1, 3)))
                jobs = connection.run(claim)
                yield
                if jobs:
                    ends = [self.end_of(job) for job in jobs]
                    settled = yield from by_turns(connection, self.db.store.settle(session, ends))
                    assert settled == []
                    self.written(ends)
                    settling, ends = ends, []
                    if left := arrived(settling, ()) - settled.decided:
                        decide = self.db.store.flows.decide(sorted(left))
                        yield from by_turns(connection, decide)
        finally:
            connection.close()
            # Some of them may be committed.
            self.written([end for end in ends if self.flow.state_of_job(end.job).finished])
            self.db.own.run(self.db.store.close_session(session))

    def end_of(self, job: ClaimedJob) -> Settlement:
        """How a job ends."""
        member = node_of(job.headers)
        assert member is not None
        name = self.name_of(job)
        end = settlement(job, self.moves.get(name, Move.COMPLETE), node=member)
        if name == self.plot.grafts:
            end = end._replace(graft=Graft(member, [node("x", jobs=2), node("y", 0)]))
        return end

    def name_of(self, job: ClaimedJob) -> str:
        """The name of a job's node."""
        member = node_of(job.headers)
        return next(each.name for each in self.flow.graph.nodes if each.id == member)

    def written(self, ends: list[Settlement]) -> None:
        """Note which jobs have ended."""
        names = {each.id: each.name for each in self.flow.graph.nodes}
        self.ran.update(names[end.node] for end in ends if end.node is not None)

    def overlook(self, connection: PostgresConnection) -> Turns:
        """What upkeep does."""
        while True:
            yield from by_turns(connection, self.db.store.flows.overlook())
            yield

    def retry(self, connection: PostgresConnection) -> Turns:
        """Retry a flow that has ended, once."""
        while not self.plot.retry or self.retried or not self.flow.state.ended:
            yield
        moves, self.moves = self.moves, {}
        try:
            yield from by_turns(connection, self.db.store.flows.retry(self.flow.made.flow))
            self.retried = True
        finally:
            if not self.retried:
                self.moves = moves


class Actor:
    """One who takes turns; who dies is followed by another one of the kind."""

    def __init__(self, db: Database, part: Callable[[PostgresConnection], Turns]) -> None:
        self._db, self._part = db, part
        self._connection, self._turns = self._born()

    def _born(self) -> tuple[PostgresConnection, Turns]:
        connection = self._db.connect()
        connection.raw().execute("SET lock_timeout = '20ms'")
        return connection, self._part(connection)

    def turn(self) -> bool:
        """Do the next statement; whether it goes on."""
        try:
            next(self._turns)
        except StopIteration:
            self._turns = iter_nothing()
        except (LockTimeout, StoreUnavailable):
            return False
        return True

    def end(self) -> None:
        """End with all that is not committed."""
        self._connection.close()
        self._turns.close()

    def die(self) -> None:
        """End, and let another one follow."""
        self.end()
        self._connection, self._turns = self._born()


def iter_nothing() -> Turns:
    """The turns of one who has nothing more to do."""
    while True:
        yield


@pytest.mark.parametrize("name", sorted({*PLOTS} - {"stop", "first failure"}))
@pytest.mark.parametrize("seed", SEEDS)
def test_all_take_turns(db: Database, name: str, seed: int) -> None:
    """Whoever meets or dies: what ran has run once, each job arrives once, and the flow ends."""
    plot = PLOTS[name]
    stage = Stage(db, plot, seed)
    stage.play()
    assert stage.flow.states == plot.states
    assert stage.ran == plot.ran
    for each in stage.flow.graph.nodes:
        assert each.left == 0, each


def test_a_decider_of_a_former_round(db: Database) -> None:
    """It was to cancel what was left of a skipped node.

    The flow was retried meanwhile: then it cancels nothing.
    """
    flow = Flowing(db.store, db.own, node("a"), node("b", 0, jobs=2))
    assert flow.run(a=Move.DISCARD) == ["a"]
    db.own.run(db.store.flows.retry(flow.made.flow))
    late = deciding.empty(PostgresGround({}, inside=False), flow.id("b"), flow.made.flow, 0)
    db.own.run(Stepped("empty", late, Begin.NOTHING))
    assert flow.states == {"a": "running", "b": "waiting"}
    assert flow.run() == ["a", "b", "b"]
