"""Building flows: jobs that wait for jobs, stored all at once or not at all.

    with rota.flow("import") as f:
        parts = f.map(parse, urls)
        total = f.add(merge, parts.results)
        f.add(notify, total.result)

Nothing is stored before the block ends; the nodes are checked when they are added, see
`rota.app.flow_building`.
"""

from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rota.app.enqueuing import FlowPlace
from rota.app.flow_building import Builder, Group
from rota.app.flow_handle import FlowHandle, Steps
from rota.errors import ConfigError
from rota.model.durations import seconds
from rota.model.flow import FlowOrder, Made
from rota.model.options import check_name
from rota.store.execute import adrive, drive

if TYPE_CHECKING:
    from rota.app.enqueue import Enqueuer
    from rota.app.enqueuing import Enqueuing


class Flow(Group):
    """A flow that is being built, for `with` and `async with`. Made by `Rota.flow`."""

    def __init__(
        self,
        enqueuing: "Enqueuing",
        name: str,
        *,
        on: str | None = None,
        conn: object = None,
        retention: float | timedelta | None = None,
        deadline: float | timedelta | None = None,
    ) -> None:
        super().__init__(Builder(enqueuing), "")
        self.name = check_name(name, "flow")
        self._enqueuing = enqueuing
        self._on = on
        self._conn = conn
        self._keep = (
            enqueuing.queues.default.completed or 0.0
            if retention is None
            else seconds(retention, "retention")
        )
        self._deadline = None if deadline is None else seconds(deadline, "deadline")
        self._handle: FlowHandle | None = None

    @property
    def handle(self) -> FlowHandle:
        """A handle on the flow, once its block has ended.

        Raises:
            ConfigError: It has not.
        """
        if self._handle is None:
            message = f"flow {self.name!r} is not stored yet: its handle is there after the block"
            raise ConfigError(message)
        return self._handle

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            home = self._enqueuing.flow_home(self._place)
            home.database.require_transaction(self._conn)
            conn = home.database.joining(self._conn)
            run = partial(home.database.run, conn=conn)
            drive(self._storing(home, own=conn is None), run)
        self._builder.open = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            home = await self._enqueuing.aflow_home(self._place)
            await home.database.arequire_transaction(self._conn)
            conn = await home.database.ajoining(self._conn)
            run = partial(home.database.arun, conn=conn)
            await adrive(self._storing(home, own=conn is None), run)
        self._builder.open = False

    @property
    def _place(self) -> FlowPlace:
        return FlowPlace(self.name, self._on, self._conn, self._builder.shards)

    def _storing(self, home: "Enqueuer", *, own: bool) -> Steps[None]:
        flows, order = home.database.store.flows, self._order(home)
        made: Made = yield flows.create(order)
        self._stored(home, order, made)
        if own and (empty := made.without_jobs()):
            yield flows.decide(empty)

    def _order(self, home: "Enqueuer") -> FlowOrder:
        orders = self._builder.orders(home.queues)
        if not orders:
            message = (
                f"flow {self.name!r} has no nodes; add some in the block, or leave the flow out"
            )
            raise ConfigError(message)
        return FlowOrder(self.name, orders, self._keep, self._deadline)

    def _stored(self, home: "Enqueuer", order: FlowOrder, made: Made) -> None:
        self._handle = FlowHandle(home, made.flow)
        for node, jobs in zip(order.nodes, made.jobs, strict=True):
            if jobs:
                home.announce(node.order.spec, jobs)
