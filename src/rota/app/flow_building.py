"""The nodes of a flow that is being built: what is asked for is checked, and becomes an order.

Args, results, keys and names are checked when a node is added, so an error in the block, whatever
kind, leaves nothing behind.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from rota.app.arguments import Alike, Arguments
from rota.app.batch import BatchTask
from rota.app.enqueue import written
from rota.app.flow_node import AnyTask, Map, Node, ResultOf, check_possible, needed
from rota.app.results import misfit
from rota.app.task import EnqueueCall, Task
from rota.args.provided import in_pages
from rota.errors import ArgsError, ConfigError
from rota.model.enqueued import Enqueued
from rota.model.flow import Condition, Edge, NodeOrder
from rota.model.job import JobId, Keys, Order
from rota.model.options import check_name
from rota.model.unique import OnConflict

if TYPE_CHECKING:
    from rota.app.enqueuing import Enqueuing
    from rota.app.queues import Queues
    from rota.model.flow import Needs

T = TypeVar("T")

RESERVED = "/#@"
"""Characters that names of nodes have for Rota's own purposes."""


class Group:
    """A part of a flow that is being built: its nodes have its name before their own."""

    def __init__(self, builder: "Builder", prefix: str) -> None:
        self._builder = builder
        self._prefix = prefix

    @property
    def nodes(self) -> list[Node[Any]]:
        """Its nodes, in the order in which they were added."""
        return [node for node in self._builder.nodes if node.name.startswith(self._prefix)]

    def flow(self, name: str) -> "Group":
        """A part of this part."""
        return Group(self._builder, f"{self._prefix}{_named(name)}/")

    def add(
        self,
        task: Task[..., Any, T],
        /,
        *args: Any,
        after: "Iterable[Node[Any] | Group] | Node[Any] | Group" = (),
        on: str = "completed",
        name: str | None = None,
        **named: Any,
    ) -> Node[T]:
        """Add a job; see `Flow.add`."""
        wanted = Wanted(task, ((args, named),), after, on, self._prefix, name)
        return Node(self._builder, *self._builder.put(wanted))

    def map(
        self,
        task: Task[..., Any, T],
        /,
        jobs: Iterable[Any],
        *,
        after: "Iterable[Node[Any] | Group] | Node[Any] | Group" = (),
        on: str = "completed",
        name: str | None = None,
        fail_fast: bool = False,
        **named: Any,
    ) -> Map[T]:
        """Add many jobs as one node; see `Flow.map`."""
        wanted = Wanted(
            task, of_map(jobs, named), after, on, self._prefix, name, many=True, fail_fast=fail_fast
        )
        return Map(self._builder, *self._builder.put(wanted))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A node that is asked for."""

    task: AnyTask
    jobs: Sequence[Arguments]
    after: "Iterable[Node[Any] | Group] | Node[Any] | Group"
    on: str
    prefix: str
    name: str | None
    many: bool = False
    fail_fast: bool = False


class Builder:
    """The nodes of a flow, or of what a job adds to one.

    Attributes:
        nodes: What was added so far.
        open: Whether more can be added.
        shards: Where several databases are one app: the shards of the keys that the args make, each
            with the first node of it.
    """

    def __init__(self, enqueuing: "Enqueuing", suffix: str = "") -> None:
        self.nodes: list[Node[Any]] = []
        self.open = True
        self.shards: dict[str, str] = {}
        self._enqueuing = enqueuing
        self._suffix = suffix
        self._orders: list[NodeOrder] = []
        self._names: dict[str, int] = {}
        self._unique: dict[tuple[str, str], str] = {}

    def put(self, wanted: Wanted) -> tuple[int, str, AnyTask]:
        """Check a node and take it in; its place, its name and its task.

        Raises:
            ConfigError: It cannot be a node of this flow.
            ArgsError: The arguments do not fit the task.
        """
        if not self.open:
            message = (
                "the flow is stored already: only its running jobs can add to it, with ctx.flow"
            )
            raise ConfigError(message)
        task = self._checked(wanted.task)
        condition = _condition(wanted.on)
        waits = self._after(wanted.after)
        call = self._through_middleware(EnqueueCall(task, wanted.jobs, many=wanted.many))
        args, later = self._encode(call)
        needs: Needs = {name: self._need(call.task, name, one) for name, one in later.items()}
        edges = {Edge(node.place, condition) for node in waits}
        edges |= {Edge(one.node.place, needed(one, condition)) for one in later.values()}
        check_possible(task.name, edges, later)
        name = self._name(wanted, task)
        keys = None if call.task.keying is None or not args else call.task.keying.keys(args)
        self._check_keys(call.task, name, keys)
        for shard in self._enqueuing.shards_of(call.task, args, later):
            self.shards.setdefault(shard, name)
        order = Order(call.task.spec.at_enqueue(), args, keys)
        for place in {one.node.place for one in later.values()}:
            self._orders[place] = self._orders[place]._replace(wanted=True)
        self._orders.append(
            NodeOrder(
                name, order, tuple(sorted(edges)), many=wanted.many, needs=needs,
                fail_fast=wanted.fail_fast,
            )
        )  # fmt: skip
        place = len(self.nodes)
        self.nodes.append(Node(self, place, name, task))
        return place, name, task

    def orders(self, queues: "Queues") -> list[NodeOrder]:
        """What is to be stored, with what is declared for the queues; nothing can be added any more."""
        self.open = False
        return [
            node._replace(order=node.order._replace(spec=queues.fill(node.order.spec)))
            for node in self._orders
        ]

    def _checked(self, given: object) -> AnyTask:
        """The app's own task of what was given."""
        task = self._enqueuing.tasks.meant(given)
        if not isinstance(task, Task):
            message = f"a task is needed, not {type(task).__name__}"
            raise ConfigError(message)
        if task.enqueuing is not self._enqueuing:
            message = f"{task.name!r} is a task of another app; use one of the same app"
            raise ConfigError(message)
        if task.conn is not None:
            message = f"{task.name!r}: conn= belongs to the flow, rota.flow(name, conn=…)"
            raise ConfigError(message)
        unique = task.spec.unique
        if self._suffix and unique is not None and unique.on_conflict == OnConflict.RAISE:
            message = (
                f"{task.name!r}: what a job adds to its flow is stored when it has completed, which is too late for an error "
                "about a key; let it be skipped, task.using(unique=Unique(…, on_conflict='skip')), or enqueue it by itself"
            )
            raise ConfigError(message)
        return task

    def _check_keys(self, task: AnyTask, name: str, keys: Keys | None) -> None:
        """Check that no node takes the jobs of one before it away."""
        unique = task.spec.unique
        if unique is None or keys is None or keys.unique is None:
            return
        for key in set(keys.unique):
            before = self._unique.setdefault((task.name, key), name)
            if unique.replaces and before != name:
                message = (
                    f"{name!r} would replace the job of {before!r}, which has the same key {key!r}: add one of them, or let "
                    "the second be skipped, task.using(unique=Unique(…, on_conflict='skip'))"
                )
                raise ConfigError(message)

    def _after(self, after: "Iterable[Node[Any] | Group] | Node[Any] | Group") -> list[Node[Any]]:
        found: list[Node[Any]] = []
        for one in (after,) if isinstance(after, Node | Group) else after:
            if isinstance(one, Group):
                found += one.nodes
            elif isinstance(one, Node):
                found.append(one)
            else:
                message = f"after: must be nodes of this flow, not {type(one).__name__}"
                raise ConfigError(message)
        for node in found:
            self._check_own(node)
        return found

    def _check_own(self, node: Node[Any]) -> None:
        if node.builder is not self:
            message = (
                f"{node.name!r} is a node of another flow; jobs wait for those of their own flow"
            )
            raise ConfigError(message)

    def _through_middleware(self, call: EnqueueCall) -> EnqueueCall:
        """The call as middleware leaves it. It is told no ids: jobs are stored when the block ends."""
        middleware, changed = self._enqueuing.middleware, [call]
        if middleware.enqueueing:

            def take(call: EnqueueCall) -> Enqueued:
                changed.append(call)
                return Enqueued([JobId(0)] * len(call.jobs))

            middleware.enqueue(replace(call, jobs=tuple(call.jobs)), take)
        return changed[-1]

    def _encode(self, call: EnqueueCall) -> tuple[Sequence[str], dict[str, ResultOf]]:
        """The args of each job, and the results that all of them get."""
        limit = self._enqueuing.max_args_bytes
        if isinstance(call.jobs, Alike):
            return written(call, limit, call.jobs), {}
        texts: list[str] = []
        later: dict[str, ResultOf] = {}
        for number, (args, named) in enumerate(call.jobs):
            try:
                text, found = call.task.codec.encode_around(args, named, ResultOf, limit=limit)
            except ArgsError as error:
                if not call.many:
                    raise
                message = f"job {number} of the map: {error}"
                raise ArgsError(message) from None
            if number and found != later:
                message = f"job {number} of the map: all jobs of a map get the same results; name them once"
                raise ConfigError(message)
            texts.append(text)
            later = found
        return texts, later

    def _need(self, task: AnyTask, name: str, result: ResultOf) -> int | list[int]:
        node = result.node
        self._check_own(node)
        if isinstance(task, BatchTask):
            message = (
                f"{task.name!r} is a batch task: its handler gets many jobs at once, and no results"
            )
            raise ConfigError(message)
        many = isinstance(node, Map)
        wanted = task.codec.given_as(name)
        wrong = misfit(node.task.result_annotation(), wanted, many=many)
        if wrong is not None:
            message = f"{task.name!r}: `{name}` does not fit the result of {node.name!r}: {wrong}"
            raise ConfigError(message)
        if in_pages(wanted) and (not many or task.executor.elsewhere):
            why = "only maps have" if not many else "a process without the database cannot read"
            message = f"{task.name!r}: `{name}` is annotated with Results, which {why}; take a list"
            raise ConfigError(message)
        return [node.place] if many else node.place

    def _name(self, wanted: Wanted, task: AnyTask) -> str:
        given = wanted.name
        base = wanted.prefix + (task.name if given is None else _named(given)) + self._suffix
        self._names[base] = count = self._names.get(base, 0) + 1
        if count == 1:
            return base
        if given is not None:
            message = f"there is a node {given!r} already; give each a name of its own"
            raise ConfigError(message)
        return f"{base}#{count}"


def of_map(jobs: Iterable[Any], named: Mapping[str, Any]) -> Sequence[Arguments]:
    """The arguments of a map's jobs: a tuple by place, a dict by name, all else as one argument."""
    rows = tuple(job if isinstance(job, tuple | dict) else (job,) for job in jobs)
    if not named and set(map(type, rows)) in ({tuple}, {dict}):
        return Alike(rows)
    return tuple(((), {**job, **named}) if isinstance(job, dict) else (job, named) for job in rows)


def _named(name: str) -> str:
    check_name(name, "node")
    if any(character in name for character in RESERVED):
        message = f"node: the name {name!r} must be without {' '.join(RESERVED)}"
        raise ConfigError(message)
    return name


def _condition(on: str) -> Condition:
    try:
        return Condition(on)
    except ValueError:
        message = f"on: must be 'completed', 'finished' or 'failed', not {on!r}"
        raise ConfigError(message) from None
