"""Which lines of a traceback pytest leaves out: those of the kit, between a test and what went wrong."""

from types import TracebackType
from typing import Protocol

from rota.errors import RotaError


class Caught(Protocol):
    """What pytest caught."""

    value: BaseException
    tb: TracebackType


def hidden(caught: Caught) -> bool:
    """Whether the kit's own lines tell nothing: it refused something, or the error is a handler's.

    pytest calls this by the name `__tracebackhide__` of a module. A defect of the kit shows all
    lines.
    """
    last = caught.tb
    while last.tb_next is not None:
        last = last.tb_next
    within = str(last.tb_frame.f_globals.get("__name__")).startswith("rota.")
    return not within or isinstance(caught.value, AssertionError | RotaError)
