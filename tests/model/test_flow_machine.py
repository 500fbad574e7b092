"""Random flows in both stores against a small oracle, whatever befalls their jobs, nodes and them.

The oracle knows which jobs count for which node and how each ended; it decides by looking at all
nodes again and again, and knows nothing of arrivals, facts, keys and marks. After each rule it and
the store must agree on every node and job.
"""

from collections import Counter
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

from rota.model.flow import Condition, FlowId, FlowState, Graft, NodeOrder, NodeState
from rota.model.job import ClaimedJob, JobId
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.operation import Begin, Statement, Steps, operation
from rota.store.protocol import Store
from tests.fixtures.large import LARGE
from tests.model.test_machine import ENDS, SETTINGS
from tests.store.factories import claim, open_session, settlement
from tests.store.flowing import Flowing, node

EXAMPLES = {"sqlite": 300, "postgres": 40} if LARGE else {"sqlite": 40, "postgres": 3}
"""A rule on PostgreSQL takes twenty times as long."""

STEPS = 25
FAR = 600.0
LEFT = {State.AVAILABLE, State.SCHEDULED, State.RETRYABLE, State.RUNNING}
"""States of jobs that have not ended."""

LATER = {
    "sqlite": (
        Statement("deadline", "UPDATE rota_flow SET deadline = deadline - 3600 WHERE id = :flow"),
        Statement(
            "stop",
            "UPDATE rota_flow_stop SET since = since - 3600, next = next - 3600 WHERE flow = :flow",
        ),
    ),
    "postgres": (
        Statement(
            "deadline",
            "UPDATE rota.flow SET deadline = deadline - interval '1 hour' WHERE id = %(flow)s::int8",
        ),
        Statement(
            "stop",
            "UPDATE rota.flow_stop SET since = since - interval '1 hour', next = next - interval '1 hour' "
            "WHERE flow = %(flow)s::int8",
        ),
    ),
}
"""What lets the deadline of a flow be past."""

COUNTED = {State.COMPLETED: "completed", State.DISCARDED: "failed", State.CANCELLED: "cancelled"}

conditions = st.sampled_from(Condition)
shapes = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.booleans(),
        st.lists(st.tuples(st.integers(0, 9), conditions), max_size=3),
    ),
    min_size=1,
    max_size=6,
)
"""For each node: how many jobs, whether it fails fast, and after which of those before."""


@dataclass
class Job:
    """What the oracle knows of a job.

    `gone`: it was deleted, `alone`: it counts for its node as it did then.
    """

    state: State
    counted: State | None = None
    requested: bool = False
    gone: bool = False
    alone: bool = False


@dataclass
class Node:
    """What the oracle knows of a node."""

    after: list[tuple["Node", Condition]]
    fast: bool
    jobs: dict[JobId, Job]
    released: bool = False
    outcome: NodeState | None = None

    @property
    def state(self) -> NodeState:
        if self.outcome is not None:
            return self.outcome
        return NodeState.RUNNING if self.released else NodeState.WAITING

    @property
    def counts(self) -> Counter[str]:
        return Counter(COUNTED[job.counted] for job in self.jobs.values() if job.counted)

    def end(self, job: Job, state: State) -> None:
        """A job has ended."""
        job.state, job.requested = state, False
        if not job.alone:
            job.counted = state

    def cancel(self, job: Job) -> None:
        """Cancel a job, or ask it to stop."""
        if job.state is State.RUNNING:
            job.requested = True
        elif job.state in LEFT:
            self.end(job, State.CANCELLED)

    def empty(self) -> None:
        """Cancel all that counts here and has not ended."""
        for job in self.jobs.values():
            if not job.alone and not job.gone:
                self.cancel(job)


@dataclass
class Oracle:
    """A flow. `deadline`: it has one, and that has not passed."""

    nodes: dict[str, Node] = field(default_factory=dict)
    stopping: bool = False
    deadline: bool = False

    @property
    def state(self) -> FlowState:
        outcomes = {each.outcome for each in self.nodes.values()}
        if None in outcomes:
            return FlowState.RUNNING
        for found in (NodeState.FAILED, NodeState.CANCELLED):
            if found in outcomes:
                return FlowState(found.value)
        return FlowState.COMPLETED

    def decide(self) -> None:
        """Look at all nodes until nothing follows any more."""
        while any([self._look(each) for each in self.nodes.values()]):  # noqa: C419 - at all of them
            pass
        if self.state.ended:
            self.stopping = False

    def _look(self, each: Node) -> bool:
        """Whether something has changed."""
        before = self._of(each)
        counts = each.counts
        if each.outcome is None:
            if self.stopping:
                each.empty()
            if counts.total() >= len(each.jobs) and (each.jobs or each.released or self.stopping):
                each.outcome = self._outcome(each, counts)
            elif each.fast and counts["failed"]:
                each.empty()
            elif not each.released and not self.stopping:
                self._begin(each)
        return self._of(each) != before

    def _outcome(self, each: Node, counts: Counter[str]) -> NodeState:
        if counts["failed"]:
            return NodeState.FAILED
        if counts["cancelled"] or (self.stopping and not each.jobs):
            return NodeState.CANCELLED
        return NodeState.COMPLETED

    def _begin(self, each: Node) -> None:
        """Release or skip a node if all have ended that it waits for."""
        if not all(other.outcome for other, _ in each.after):
            return
        met = all(
            condition is not Condition.COMPLETED or other.outcome is NodeState.COMPLETED
            for other, condition in each.after
        )
        hopes = [other for other, condition in each.after if condition is Condition.FAILED]
        if met and (not hopes or any(other.outcome is NodeState.FAILED for other in hopes)):
            each.released = True
            for job in each.jobs.values():
                if job.state is State.SCHEDULED:
                    job.state = State.AVAILABLE
        else:
            each.outcome = NodeState.SKIPPED
            each.empty()

    def _of(self, each: Node) -> object:
        jobs = [(job.state, job.requested) for job in each.jobs.values()]
        return each.released, each.outcome, jobs

    def again(self) -> list[Node]:
        """What a retry opens again: what failed or was cancelled.

        And whatever has ended that waits for that.
        """
        again = [
            each for each in self.nodes.values()
            if each.outcome in {NodeState.FAILED, NodeState.CANCELLED}
        ]  # fmt: skip
        for each in again:
            again += [
                other for other in self.nodes.values()
                if other.outcome is not None and all(other is not one for one in again)
                and any(before is each for before, _ in other.after)
            ]  # fmt: skip
        return again

    def retry(self) -> bool:
        """Open nodes again; those that wait for others begin anew."""
        again = self.again()
        for each in again:
            anew = any(before is other for before, _ in each.after for other in again)
            each.outcome = None
            each.released = each.released and not anew
            for job in each.jobs.values():
                ended = {State.DISCARDED, State.CANCELLED} | ({State.COMPLETED} if anew else set())
                if job.gone or job.alone or job.counted not in ended:
                    continue
                job.counted = None
                job.state = State.AVAILABLE if each.released else State.SCHEDULED
        self.stopping = self.stopping and not again
        return bool(again)


@operation(Begin.DURABLE)
def _changed(statement: Statement, flow: FlowId) -> Steps[None]:
    """Change something behind the store's back."""
    yield statement(flow=flow)


class Machine(RuleBasedStateMachine):
    """What can happen to a flow."""

    def __init__(self, store: Store, connection: Connection) -> None:
        super().__init__()
        self.store, self.connection = store, connection
        self.session = open_session(store, connection)
        self.oracle = Oracle()
        self.held: dict[JobId, ClaimedJob] = {}
        self.grafts = 0

    def run(self, operation: Any) -> Any:
        return self.connection.run(operation)

    @initialize(shapes=shapes, deadline=st.booleans())
    def build(
        self, shapes: list[tuple[int, bool, list[tuple[int, Condition]]]], *, deadline: bool
    ) -> None:
        orders: list[NodeOrder] = []
        for place, (jobs, fast, after) in enumerate(shapes):
            edges = {(other % place, condition) for other, condition in after} if place else set()
            orders.append(node(f"n{place}", *sorted(edges), jobs=jobs, fail_fast=fast, many=True))
        self.flow = Flowing(
            self.store, self.connection, *orders, deadline=FAR if deadline else None
        )
        self.oracle.deadline = deadline
        known: list[Node] = []
        for order, members in zip(orders, self.flow.made.jobs, strict=True):
            state = State.SCHEDULED if order.after else State.AVAILABLE
            after_of = [(known[edge.after], edge.condition) for edge in order.after]
            known.append(
                Node(after_of, order.fail_fast, {job: Job(state) for job in members}, not after_of)
            )
            self.oracle.nodes[order.name] = known[-1]
        self.decide()

    def teardown(self) -> None:
        """Nothing is left of the flow for the next example."""
        self.run(self.store.close_session(self.session))
        jobs = [job for each in self.oracle.nodes.values() for job in each.jobs]
        if jobs:
            self.run(self.store.delete(jobs))
            self.run(self.store.flows.decide([each.id for each in self.flow.graph.nodes]))
            for _ in range(5):
                self.run(self.store.flows.overlook())

    # Runs ------------------------------------------------------------------------------------

    @rule()
    def claim(self) -> None:
        for job in claim(self.store, self.connection, self.session, 1):
            known, _ = self.job(job.id)
            assert known.state is State.AVAILABLE
            known.state = State.RUNNING
            self.held[job.id] = job
            return
        assert all(
            job.state is not State.AVAILABLE
            for each in self.oracle.nodes.values() for job in each.jobs.values()
        )  # fmt: skip

    @precondition(lambda self: self.held)
    @rule(data=st.data(), how=st.sampled_from((Move.COMPLETE, *ENDS, Move.RETRY, Move.RELEASE)))
    def settle(self, data: st.DataObject, how: Move) -> None:
        job, known, home = self.drawn(data)
        self.end(job, how)
        if how in ENDS:
            home.end(known, ENDS[how])
        elif known.requested:
            home.end(known, State.CANCELLED)
        else:
            known.state = State.AVAILABLE if how is Move.RELEASE else State.RETRYABLE
        self.decide()

    @precondition(lambda self: self.held and not self.oracle.stopping)
    @rule(data=st.data(), jobs=st.integers(0, 2))
    def graft(self, data: st.DataObject, jobs: int) -> None:
        job, known, home = self.drawn(data)
        if known.alone or len(self.oracle.nodes) > 8:
            return
        self.grafts += 1
        names = [f"x{self.grafts}", f"y{self.grafts}"]
        member = next(
            each.id for each in self.flow.graph.nodes if self.oracle.nodes[each.name] is home
        )
        orders = [node(names[0], jobs=jobs), node(names[1], 0)]
        self.end(job, Move.COMPLETE, graft=Graft(member, orders))
        home.end(known, State.COMPLETED)
        first, second = (self.members(name) for name in names)
        x = Node([], fast=False, jobs=dict.fromkeys(first), released=True)  # type: ignore[arg-type]
        x.jobs = {one: Job(State.AVAILABLE) for one in first}
        y = Node(
            [(x, Condition.COMPLETED)],
            fast=False,
            jobs={one: Job(State.SCHEDULED) for one in second},
        )
        for other in self.oracle.nodes.values():
            if waits := [condition for before, condition in other.after if before is home]:
                other.after += [(new, condition) for new in (x, y) for condition in waits]
        self.oracle.nodes |= dict(zip(names, (x, y), strict=True))
        self.decide()

    @rule()
    def die(self) -> None:
        """The worker is gone, and what it held comes back."""
        self.run(self.store.close_session(self.session))
        self.session = open_session(self.store, self.connection)
        for job in self.held:
            known, home = self.job(job)
            if known.requested:
                home.end(known, State.CANCELLED)
            else:
                known.state = State.AVAILABLE
        self.held.clear()
        self.decide()

    # By hand ---------------------------------------------------------------------------------

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if (job := self.any_job(data)) is not None:
            known, home = self.job(job)
            self.run(self.store.cancel([job]))
            home.cancel(known)
            self.decide()

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if (job := self.any_job(data)) is not None:
            known, home = self.job(job)
            gone = self.run(self.store.delete([job]))
            assert gone == ([] if known.state is State.RUNNING else [job])
            if gone:
                if known.state in LEFT:
                    home.end(known, State.CANCELLED)
                known.gone = True
            self.decide()

    @rule()
    def clear(self) -> None:
        """Delete what is available."""
        last = max((job for each in self.oracle.nodes.values() for job in each.jobs), default=0)
        self.run(
            self.store.clear(
                "default", State.AVAILABLE, after=JobId(0), until=JobId(last), limit=100
            )
        )
        for each in self.oracle.nodes.values():
            for job in each.jobs.values():
                if job.state is State.AVAILABLE and not job.gone:
                    each.end(job, State.CANCELLED)
                    job.gone = True
        self.decide()

    @precondition(lambda self: not self.oracle.stopping)
    @rule(data=st.data(), alone=st.booleans())
    def retry(self, data: st.DataObject, *, alone: bool) -> None:
        if (job := self.any_job(data)) is not None:
            known, home = self.job(job)
            back = self.run(self.store.retry([job], alone=alone))
            waits = known.state in {State.AVAILABLE, State.RUNNING}
            waits = waits or (known.state in LEFT and not home.released and not known.alone)
            if not alone and not known.alone and known.state in {State.DISCARDED, State.CANCELLED}:
                waits = any(home is each for each in self.oracle.again())
            assert back == ([] if waits else [job])
            if back:
                if not known.state.finished or known.alone:
                    pass
                elif home.outcome is None:
                    known.counted = None
                else:
                    known.alone = True
                known.state = State.AVAILABLE
            self.decide()

    @rule()
    def stop(self) -> None:
        stopped = self.run(self.store.flows.stop(self.flow.made.flow, "enough"))
        assert stopped is not self.oracle.state.ended
        self.oracle.stopping = stopped
        self.decide()

    @precondition(lambda self: self.oracle.deadline)
    @rule()
    def pass_the_deadline(self) -> None:
        for statement in LATER[self.store.name]:
            self.run(_changed(statement, self.flow.made.flow))
        self.oracle.deadline = False
        self.oracle.stopping = self.oracle.stopping or not self.oracle.state.ended
        self.decide()

    @rule()
    def retry_the_flow(self) -> None:
        self.run(self.store.flows.retry(self.flow.made.flow))
        self.oracle.retry()
        self.decide()

    @precondition(lambda self: self.store.name == "postgres")
    @rule()
    def tidy(self) -> None:
        """Turn the rings, and empty what was left."""
        self.run(self.store.tidy())

    # -----------------------------------------------------------------------------------------

    def decide(self) -> None:
        """What settlers and upkeep do, until nothing is left to be done."""
        self.oracle.decide()
        for _ in range(10):
            if not self.run(self.store.flows.overlook()):
                break

    def end(self, job: ClaimedJob, move: Move, **rest: Any) -> None:
        known, _ = self.job(job.id)
        member = None if known.alone else self.home_of(job.id)
        end = settlement(job, move, node=member, delay=FAR if move is Move.RETRY else 0.0, **rest)
        assert self.run(self.store.settle(self.session, [end])) == []
        del self.held[job.id]

    def drawn(self, data: st.DataObject) -> tuple[ClaimedJob, Job, Node]:
        job = self.held[data.draw(st.sampled_from(sorted(self.held)))]
        return job, *self.job(job.id)

    def any_job(self, data: st.DataObject) -> JobId | None:
        jobs = [
            job for each in self.oracle.nodes.values()
            for job, known in each.jobs.items() if not known.gone
        ]  # fmt: skip
        return data.draw(st.sampled_from(jobs)) if jobs else None

    def job(self, job: JobId) -> tuple[Job, Node]:
        return next(
            (each.jobs[job], each) for each in self.oracle.nodes.values() if job in each.jobs
        )

    def home_of(self, job: JobId) -> Any:
        _, home = self.job(job)
        return next(
            each.id for each in self.flow.graph.nodes if self.oracle.nodes[each.name] is home
        )

    def members(self, name: str) -> list[JobId]:
        found = self.run(self.store.flows.node(self.flow.made.flow, name))
        return [] if found is None else list(self.run(self.store.flows.members(found.id, 100)))

    # What must be so -------------------------------------------------------------------------

    @invariant()
    def it_is_as_expected(self) -> None:
        if not self.oracle.nodes:
            return
        graph = self.flow.graph
        for each in graph.nodes:
            wanted = self.oracle.nodes[each.name]
            assert each.state is wanted.state, each.name
            counts = wanted.counts
            found = each.completed, each.failed, each.cancelled
            assert found == (counts["completed"], counts["failed"], counts["cancelled"]), each.name
        assert graph.flow.state is self.oracle.state
        jobs = {
            job: known for each in self.oracle.nodes.values()
            for job, known in each.jobs.items() if not known.gone
        }  # fmt: skip
        records = {one.id: one for one in self.run(self.store.get(list(jobs)))}
        assert {job: one.state for job, one in records.items()} == {
            job: known.state for job, known in jobs.items()
        }


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tidying turns the rings."""
    monkeypatch.setattr("rota.store.postgres.clearing.REST", 0.0)
    for ring in ("LOG", "LEASE", "FINISHED"):
        monkeypatch.setattr(f"rota.store.postgres.rings.{ring}_SIZE", 0)


def test_flows_are_as_expected(store: Store, connection: Connection) -> None:
    """Whatever happens to jobs: nodes begin and end as they should, and each job counts once."""
    searching = settings(SETTINGS, max_examples=EXAMPLES[store.name], stateful_step_count=STEPS)
    # The annotation asks for a class; a function that makes a machine is documented, too.
    machine: Any = lambda: Machine(store, connection)  # noqa: E731
    run_state_machine_as_test(machine, settings=searching)
