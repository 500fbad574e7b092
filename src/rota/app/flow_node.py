"""Nodes of a flow that is being built, and what stands for their results."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from rota.app.task import Task
from rota.errors import ConfigError
from rota.model.flow import Condition, Edge

if TYPE_CHECKING:
    from rota.app.flow_building import Builder

T_co = TypeVar("T_co", covariant=True)
"""What a node's jobs return: a list of nodes of several kinds can be waited for."""

AnyTask = Task[..., Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class ResultOf:
    """Stands for a node's result among a job's arguments: of a map, a list of all results."""

    node: "Node[Any]"


class Node(Generic[T_co]):
    """A node of a flow that is being built: one job. Made by `add`.

    Attributes:
        name: Its name in the flow.
    """

    def __init__(self, builder: "Builder", place: int, name: str, task: AnyTask) -> None:
        self.builder = builder
        self.place = place
        self.name = name
        self.task = task

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def result(self) -> T_co:
        """Give it to a node as an argument: its job gets this job's result, and waits for it."""
        return cast("T_co", ResultOf(self))


class Map(Node[T_co]):
    """A node of many jobs. Made by `map`."""

    @property
    def result(self) -> T_co:
        """A map has many.

        Raises:
            ConfigError: Always.
        """
        message = f"{self.name!r} is a map: it has .results, which fit a list or rota.Results"
        raise ConfigError(message)

    @property
    def results(self) -> list[T_co]:
        """Give it to a node as an argument: its job gets all results, in the order of the args."""
        return cast("list[T_co]", ResultOf(self))


def needed(result: ResultOf, on: Condition) -> Condition:
    """What a result's node must have come to. A map may have results although some jobs failed."""
    finished = on is Condition.FINISHED and isinstance(result.node, Map)
    return Condition.FINISHED if finished else Condition.COMPLETED


def check_possible(task: str, edges: Collection[Edge], results: Mapping[str, ResultOf]) -> None:
    """Check that no node is given the result of one that it waits for to fail, or to end in any way.

    Raises:
        ConfigError: One is.
    """
    for name, one in results.items():
        if len({edge.condition for edge in edges if edge.after == one.node.place}) > 1:
            message = (
                f"{task!r}: `{name}` is the result of {one.node.name!r}, which exists only if that has completed; "
                "leave the node out of after=, or do without its result"
            )
            raise ConfigError(message)
