"""The arguments of the jobs of one enqueue, as callers give them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, overload

from rota.errors import ArgsError

Arguments = tuple[tuple[object, ...], Mapping[str, object]]
"""The positional and the keyword arguments of one job."""

NO_NAMES: Mapping[str, object] = {}
"""Of a job whose arguments are all positional."""


class Alike(Sequence[Arguments]):
    """The arguments of many jobs, which are all tuples or all dicts.

    The pairs are made when they are asked for: many at once would cost more than all that is done
    with them.
    """

    def __init__(self, rows: tuple[tuple[Any, ...] | dict[str, Any], ...]) -> None:
        self.rows = rows

    @overload
    def __getitem__(self, at: int) -> Arguments: ...
    @overload
    def __getitem__(self, at: slice) -> Self: ...
    def __getitem__(self, at: int | slice) -> Arguments | Self:
        if isinstance(at, slice):
            return type(self)(self.rows[at])
        row = self.rows[at]
        return ((), row) if isinstance(row, dict) else (row, NO_NAMES)

    def __len__(self) -> int:
        return len(self.rows)


def arguments_of_many(
    jobs: Iterable[Sequence[Any] | Mapping[str, Any]],
) -> Sequence[Arguments]:
    """The arguments of each job of an `enqueue_many`.

    Raises:
        ArgsError: One of them is neither a tuple (or list) nor a dict.
    """
    given = tuple(jobs)
    if set(map(type, given)) in ({tuple}, {dict}):
        return Alike(given)  # type: ignore[arg-type]
    return tuple(_arguments(number, job) for number, job in enumerate(given))


def _arguments(number: int, job: object) -> Arguments:
    match job:
        case Mapping():
            return (), job
        case tuple() | list():
            return tuple(job), {}
        case _:
            pass
    message = (
        "must be a tuple of positional arguments or a dict of keyword arguments, "
        f"not {type(job).__name__}; for a single argument write (value,)"
    )
    raise of_many(number, ArgsError(message))


def of_many(number: int, error: ArgsError) -> ArgsError:
    """The same error, told of one of many jobs."""
    return ArgsError(f"job {number} of enqueue_many: {error}")
