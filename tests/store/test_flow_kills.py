"""A worker, an upkeep or a user that dies after any statement.

Each node is released once, and never not at all, and flows end.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

import pytest

from rota.model.flow import Condition, Graft, NodeOrder
from rota.model.headers import node_of
from rota.model.job import ClaimedJob
from rota.model.states import Move
from rota.store.connections import Connection
from rota.store.membership import arrived
from rota.store.operation import Operation
from rota.store.protocol import Store
from tests.fixtures.large import LARGE
from tests.store.factories import claim, open_session, settlement
from tests.store.flowing import Flowing, node
from tests.store.test_memory_kills import KilledError, killed

T = TypeVar("T")

FINISHED, FAILED = Condition.FINISHED, Condition.FAILED

EACH = 1 if LARGE else 11
"""Of so many places to die, one is tried."""

LONGEST = 100
"""Operations after which a flow goes on for ever."""


@dataclass(frozen=True)
class Plot:
    """What happens in a flow when nobody dies.

    `stop` is the node after whose job a user stops the flow; with `retry` one retries it once it
    has ended. `ran` is how often jobs of which node end by themselves.
    """

    nodes: tuple[NodeOrder, ...]
    states: Mapping[str, str]
    ran: Mapping[str, int]
    moves: Mapping[str, Move] = field(default_factory=dict)
    grafts: str | None = None
    stop: str | None = None
    retry: bool = False


PLOTS = {
    "success": Plot(
        nodes=(
            node("a", jobs=2), node("b", 0), node("x", (0, FAILED)), node("y", (2, FINISHED), jobs=2),
            node("m", 0, jobs=0), node("n", 4), node("c", 1, 3, 5), node("d", 6),
        ),
        states={**dict.fromkeys("abcdmny", "completed"), "x": "skipped"},
        ran={"a": 2, "b": 1, "y": 2, "n": 1, "c": 1, "d": 1},
    ),
    "failure": Plot(
        nodes=(node("a", jobs=2), node("b", 0), node("c", 1, jobs=2), node("d", (2, FINISHED)), node("e", (0, FAILED))),
        moves={"a": Move.DISCARD},
        states={"a": "failed", "b": "skipped", "c": "skipped", "d": "completed", "e": "completed"},
        ran={"a": 2, "d": 1, "e": 1},
    ),
    "first failure": Plot(
        nodes=(node("a"), node("f", 0, jobs=4, fail_fast=True), node("b", (1, FINISHED))),
        moves={"f": Move.DISCARD},
        states={"a": "completed", "f": "failed", "b": "completed"},
        ran={"a": 1, "f": 1, "b": 1},
    ),
    "graft": Plot(
        nodes=(node("a"), node("b", 0), node("c", 1)),
        grafts="b",
        states={"a": "completed", "b": "completed", "x": "completed", "y": "completed", "c": "completed"},
        ran={"a": 1, "b": 1, "x": 2, "y": 1, "c": 1},
    ),
    "stop": Plot(
        nodes=(node("a"), node("b", 0, jobs=2), node("c", 1), node("d", (2, FINISHED))),
        stop="a",
        states={"a": "completed", "b": "cancelled", "c": "cancelled", "d": "cancelled"},
        ran={"a": 1},
    ),
    "retry": Plot(
        nodes=(node("a", jobs=2), node("b", 0), node("c", 1), node("d", (0, FAILED)), node("e", (3, FINISHED))),
        moves={"a": Move.DISCARD},
        retry=True,
        states={"a": "completed", "b": "completed", "c": "completed", "d": "skipped", "e": "completed"},
        ran={"a": 4, "b": 1, "c": 1, "d": 1, "e": 2},
    ),
}  # fmt: skip


class Life:
    """A flow, and workers of which one dies."""

    def __init__(
        self, store: Store, connection: Connection, plot: Plot, *, death: int, after: int
    ) -> None:
        self._store, self._connection = store, connection
        self._plot, self._death, self._after = plot, death, after
        self._number = 0
        self._moves = dict(plot.moves)
        self.flow = Flowing(store, connection, *plot.nodes)
        self.ran = Counter[str]()
        self.died = False
        self._stopped = self._retried = False
        self._session = open_session(store, connection)

    def live(self) -> None:
        """Run it to its end."""
        while not self._over():
            assert self._number < LONGEST, f"it goes on for ever: {self.flow.states}"
            try:
                self._live()
            except KilledError:
                self.died = True
                self._connection.run(self._store.close_session(self._session))
                self._session = open_session(self._store, self._connection)

    def _over(self) -> bool:
        ended = self.flow.state.ended
        return ended and (self._retried or not self._plot.retry)

    def _live(self) -> None:
        if self._plot.stop is not None and self.ran[self._plot.stop] and not self._stopped:
            self._do(self._store.flows.stop(self.flow.made.flow, "enough"))
            self._stopped = True
        if self._plot.retry and self.flow.state.ended:
            self._do(self._store.flows.retry(self.flow.made.flow))
            self._retried, self._moves = True, {}
        self._do(self._store.flows.overlook())
        # One by one, so that what a first one brings about may come between.
        for job in claim(self._store, self._connection, self._session, 1):
            self._run(job)

    def _run(self, job: ClaimedJob) -> None:
        member = node_of(job.headers)
        assert member is not None
        name = next(each.name for each in self.flow.graph.nodes if each.id == member)
        move = self._moves.get(name, Move.COMPLETE)
        end = settlement(job, move, node=member)
        if name == self._plot.grafts:
            end = end._replace(graft=Graft(member, [node("x", jobs=2), node("y", 0)]))
        try:
            settled = self._do(self._store.settle(self._session, [end]))
        finally:
            # The process may have died after the commit.
            self.ran[name] += self.flow.state_of_job(job.id).finished
        assert settled == []
        if left := arrived([end], ()) - settled.decided:
            self._do(self._store.flows.decide(sorted(left)))

    def _do(self, operation: Operation[T]) -> T:
        """Do the next thing, to its end, unless it is the last one of this process."""
        self._number += 1
        if self._number == self._death:
            operation = killed(operation, self._after)
        return self._connection.run(operation)


def deaths(store: Store, connection: Connection, plot: Plot) -> Iterator[Life]:
    """Lives with one death each: in each operation, after each statement; at last one without."""
    number = 0
    for death in count(1):
        first = True
        for after in count():
            number += 1
            if not first and number % EACH:
                continue
            life = Life(store, connection, plot, death=death, after=after)
            life.live()
            yield life
            if not life.died:
                if first:
                    return
                break
            first = False


@pytest.mark.parametrize("name", PLOTS)
def test_a_death_after_any_statement(store: Store, connection: Connection, name: str) -> None:
    """Whoever dies and when: all ran once, what was due was released, and each job arrived once."""
    plot = PLOTS[name]
    for life in deaths(store, connection, plot):
        assert life.flow.states == plot.states
        assert life.ran == plot.ran
        for each in life.flow.graph.nodes:
            assert each.left == 0, each
    assert not life.died
