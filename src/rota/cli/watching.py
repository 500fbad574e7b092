"""Watching something until it ends: what `rota jobs watch` and `rota flows watch` share."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from rota.terminal.exits import INTERRUPTED, Failure
from rota.terminal.output import on_terminal

if TYPE_CHECKING:
    from rota import Rota

T = TypeVar("T")

Way = Callable[[], contextlib.AbstractContextManager[Callable[[T], None]]]
"""A way to show what is watched: within the block, each look is shown by a call."""


@contextlib.contextmanager
def watching(
    what: str,
    url: str | None,
    *,
    as_json: bool,
    programs: Way[T],
    terminal: Way[T],
    lines: Way[T],
) -> Iterator[tuple["Rota", Callable[[T], None]]]:
    """The database, and what shows each look.

    It shows a look to programs, on a terminal, or line by line for pipes and logs.

    Raises:
        Failure: The user stopped watching by Ctrl-C.
    """
    from rota.cli.database import database

    way = programs if as_json else terminal if on_terminal() else lines
    try:
        with database(url) as rota, way() as show:
            yield rota, show
    except KeyboardInterrupt:
        message = f"stopped watching by Ctrl-C; the {what} goes on"
        raise Failure(message, INTERRUPTED) from None
