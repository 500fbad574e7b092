"""Results as arguments: what a job of a flow is given of others that ended before it began.

A single result and a list are put into the job's args before its handler is called, so any executor
runs it; a parameter that is annotated `Results` gets them page by page from the database, as they
are asked for.
"""

import dataclasses
import typing
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from rota.app.introspection import without_outcomes
from rota.args import ResultCodec
from rota.args.provided import InPages
from rota.errors import ArgsError
from rota.model.flow import needs_of
from rota.model.headers import NodeId
from rota.model.job import ClaimedJob, JobId
from rota.store.operation import Operation

if TYPE_CHECKING:
    from rota.app.task import Task
    from rota.database.database import Database

T = TypeVar("T")

PAGE = 1000
"""Results that are read at once."""

Page = list[tuple[JobId, str]]
"""Ids of jobs, with their results as JSON texts."""

Fetch = typing.Generator[Operation[Any], Any, T]
"""Operations that are to be run, each of which is given its answer."""


class Results(InPages, Generic[T]):
    """The results of a map, in the order of its args: `len`, `for`, `async for`.

    They are read in pages, as often as they are asked for.

    Annotate a parameter with `Results[T]` where a list would be too large for the memory.
    """

    def __init__(
        self, database: "Database", node: NodeId, count: int, decode: Callable[[str], T]
    ) -> None:
        self._database = database
        self._node = node
        self._count = count
        self._decode = decode

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        last: JobId | None = None
        while page := self._database.run(self._page(last)):
            yield from (self._decode(text) for _, text in page)
            last = page[-1][0]

    async def __aiter__(self) -> AsyncIterator[T]:
        last: JobId | None = None
        while page := await self._database.arun(self._page(last)):
            for _, text in page:
                yield self._decode(text)
            last = page[-1][0]

    def _page(self, last: JobId | None) -> Operation[Page]:
        return self._database.store.flows.results(self._node, PAGE, last)


class Filled(NamedTuple):
    """A job whose args have the results, and the parameters that get them in pages."""

    job: ClaimedJob
    pages: Mapping[str, Results[Any]]


def fetching(job: ClaimedJob, task: "Task[..., Any, Any]") -> Fetch[Filled]:
    """What is to be read for a job, and then the job with it.

    Raises:
        ArgsError: A result is not there.
    """
    database = task.enqueuing.database
    flows = database.store.flows
    parts: dict[str, str] = {}
    pages: dict[str, Results[Any]] = {}
    for name, need in needs_of(job.headers).items():
        if isinstance(need, int):
            found: Page = yield flows.results(NodeId(need), 1)
            if not found:
                message = (
                    f"`{name}`: the result for this parameter is missing; was its flow deleted?"
                )
                raise ArgsError(message)
            parts[name] = found[0][1]
        elif (element := in_pages(task, name)) is not None:
            count = yield flows.count_results(NodeId(need[0]))
            decode = ResultCodec(element[0], task.name).decode
            pages[name] = Results(database, NodeId(need[0]), count, decode)
            parts[name] = "null"
        else:
            parts[name] = f"[{','.join((yield from _all(database, NodeId(need[0]))))}]"
    return Filled(replace(job, args=_joined(job.args, parts)), pages)


def _all(database: "Database", node: NodeId) -> Fetch[list[str]]:
    texts: list[str] = []
    last: JobId | None = None
    while page := (yield database.store.flows.results(node, PAGE, last)):
        texts += [text for _, text in page]
        last = page[-1][0]
    return texts


def _joined(args: str, parts: Mapping[str, str]) -> str:
    more = [f"{msgspec.json.encode(name).decode()}:{text}" for name, text in parts.items()]
    body = args.strip()[1:-1].strip()
    return "{" + ",".join([*([body] if body else []), *more]) + "}"


def in_pages(task: "Task[..., Any, Any]", name: str) -> tuple[object] | None:
    """Of what the results are that a parameter gets in pages; `None` where it gets a list."""
    annotation = task.codec.given_as(name)
    if annotation is Results:
        return (Any,)
    if typing.get_origin(annotation) is Results:
        return (typing.get_args(annotation)[0],)
    return None


def put(
    names: Sequence[str],
    given: tuple[list[object], dict[str, object]],
    pages: Mapping[str, Results[Any]],
) -> None:
    """Put results in pages where the handler wants them; `names` are its parameters in order."""
    args, named = given
    for name, results in pages.items():
        place = names.index(name)
        if place < len(args):
            args[place] = results
        else:
            named[name] = results


def misfit(given: object, wanted: object, *, many: bool) -> str | None:
    """Why results annotated `given` do not fit a parameter of `wanted`; `None` if uncertain."""
    given = without_outcomes(given)
    if not many:
        return None if _fits(given, wanted) else f"{_name(given)} is not {_name(wanted)}"
    origin = typing.get_origin(wanted) or wanted
    if origin is Any or _open(origin):
        return None
    if origin is not Results and not (isinstance(origin, type) and issubclass(list, origin)):
        return f"the results of a map are a list, which is not {_name(wanted)}"
    inner = typing.get_args(wanted)
    if inner and not _fits(given, inner[0]):
        return f"{_name(given)} is not {_name(inner[0])}"
    return None


def _open(annotation: object) -> bool:
    """Whether nothing can be said of it here."""
    return annotation is Any or annotation is object or isinstance(annotation, TypeVar)


def _fits(given: object, wanted: object) -> bool:
    given, wanted = _bare(given), _bare(wanted)
    if _open(given) or _open(wanted) or given == wanted:
        return True
    if options := _union(given):
        return all(_fits(option, wanted) for option in options)
    if options := _union(wanted):
        return any(_fits(given, option) for option in options)
    mine, other = _class(given), _class(wanted)
    if mine is None or other is None:
        return True
    if not issubclass(mine, other) and (mine, other) != (int, float):
        # What is certain is said of these alone: texts may be dates, for example.
        return not (_certain(mine) and _certain(other))
    inner, others = typing.get_args(given), typing.get_args(wanted)
    return len(inner) != len(others) or all(map(_fits, inner, others))


def _bare(annotation: object) -> object:
    """The annotation without what is annotated to it."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _bare(typing.get_args(annotation)[0])
    return annotation


def _certain(kind: type) -> bool:
    """Whether nothing but itself is read from it: plain types, and objects with fields."""
    if issubclass(kind, msgspec.Struct):
        return not kind.__struct_config__.array_like
    return kind in _PLAIN or dataclasses.is_dataclass(kind)


_PLAIN = {int, float, str, bool, list, type(None)}
"""Types of which nothing is read from another of them."""


def _union(annotation: object) -> tuple[object, ...]:
    import types

    union = isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union
    return typing.get_args(annotation) if union else ()


def _class(annotation: object) -> type | None:
    if annotation is None:
        return type(None)
    origin = typing.get_origin(annotation) or annotation
    return origin if isinstance(origin, type) else None


def _name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
