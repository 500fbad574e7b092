"""A store for one test: the app's, with keys of the test's own, and a memory of what was enqueued."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from rota.model.enqueued import Enqueued
from rota.model.flow import FlowOrder, Made, NodeOrder
from rota.model.job import JobFilter, JobId, JobRecord, Order, SessionId
from rota.model.settlement import Completions, Settled, Settlement
from rota.model.states import State
from rota.store.operation import Operation, Stepped, Steps
from rota.store.protocol import Store

T = TypeVar("T")
R = TypeVar("R")


class IsolatedStore:
    """All operations are the store's own; these only see to keys and locks on their way.

    A unique key is taken until the transaction ends, and every other enqueue of it waits for that.
    So it begins with the test's id, unless the id is empty.

    Attributes:
        orders: By its id, the task and the args of each job that was enqueued, these as JSON.
        limited: Whether some of them have a limit.
    """

    def __init__(self, store: Store, test: str) -> None:
        self._store = store
        self._prefix = f"{test}|" if test else ""
        self.orders: dict[JobId, tuple[str, str]] = {}
        self.limited = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def enqueue(self, order: Order) -> Operation[Enqueued]:
        """Store the jobs of an order. No worker can see them, so none is woken."""
        operation = self._store.enqueue(self._own(order))
        return Stepped(
            operation.name, self._noted(operation, order), operation.begin, operation.then
        )

    @property
    def flows(self) -> "IsolatedFlows":
        """The operations on flows."""
        return IsolatedFlows(self._store, self._own_nodes)

    def settle(
        self,
        session: SessionId,
        settlements: Sequence[Settlement],
        completions: Sequence[Completions] = (),
    ) -> Operation[Settled]:
        """Write settlements, and enqueue successors."""
        written = [self._followed(settlement) for settlement in settlements]
        return self._store.settle(session, written, completions)

    def settle_tagged(
        self, session: SessionId, settlement: Settlement, before: int | None
    ) -> Operation[Settled]:
        """`settle` for a job that its handler's transaction completes."""
        return self._store.settle_tagged(session, self._followed(settlement), before)

    def get(self, jobs: list[JobId]) -> Operation[list[JobRecord]]:
        """The jobs with these ids."""
        return _mapped(self._store.get(jobs), self._shown)

    def list_jobs(self, wanted: JobFilter) -> Operation[list[JobRecord]]:
        """The newest jobs."""
        if wanted.subject is not None:
            wanted = replace(wanted, subject=self._prefix + wanted.subject)
        return _mapped(self._store.list_jobs(wanted), self._shown)

    def cancel(
        self, jobs: Sequence[JobId], keep: Mapping[str, float] | None = None
    ) -> Operation[dict[JobId, State]]:
        """Cancel jobs; no other test waits."""
        return self._store.testing.unlocked(self._store.cancel(jobs, keep))

    def delete(self, jobs: Sequence[JobId]) -> Operation[list[JobId]]:
        """Remove jobs; no other test waits."""
        return self._store.testing.unlocked(self._store.delete(jobs))

    def _own(self, order: Order) -> Order:
        """An order with keys of the test's own."""
        self.limited = self.limited or order.spec.limit is not None
        keys = order.keys
        if keys is not None and keys.unique is not None:
            keys = keys._replace(unique=[self._prefix + key for key in keys.unique])
        return Order(replace(order.spec, wake=False), order.args, keys)

    def _own_nodes(self, nodes: Sequence[NodeOrder]) -> list[NodeOrder]:
        return [node._replace(order=self._own(node.order)) for node in nodes]

    def _followed(self, settlement: Settlement) -> Settlement:
        if settlement.successor is not None:
            settlement = settlement._replace(successor=self._own(settlement.successor))
        if settlement.graft is not None:
            graft = settlement.graft._replace(nodes=self._own_nodes(settlement.graft.nodes))
            settlement = settlement._replace(graft=graft)
        return settlement

    def _noted(self, operation: Operation[Enqueued], order: Order) -> Steps[Enqueued]:
        stored = yield from operation.steps
        task = order.spec.task
        self.orders.update(
            (job, (task, args)) for job, args in zip(stored, order.args, strict=True)
        )
        return stored

    def _shown(self, records: list[JobRecord]) -> list[JobRecord]:
        return [
            replace(record, unique_key=record.unique_key.removeprefix(self._prefix))
            if record.unique_key
            else record
            for record in records
        ]


class IsolatedFlows:
    """All operations are the store's own, on orders with keys of the test's own."""

    def __init__(
        self, store: Store, own: Callable[[Sequence[NodeOrder]], Sequence[NodeOrder]]
    ) -> None:
        self._flows = store.flows
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flows, name)

    def create(self, order: FlowOrder) -> Operation[Made]:
        """Store a flow."""
        return self._flows.create(order._replace(nodes=self._own(order.nodes)))


def _mapped(operation: Operation[T], function: Callable[[T], R]) -> Operation[R]:
    def steps() -> Steps[R]:
        return function((yield from operation.steps))

    return Stepped(operation.name, steps(), operation.begin, operation.then)
