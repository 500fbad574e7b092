"""Args that are written as JSON when they are asked for: while the server stores those before them."""

from collections.abc import Callable, Sequence
from typing import overload

from rota.app.arguments import Alike

LEAST = 1000
"""Jobs from which on it pays: fewer are written before anything is asked of the database."""

Write = Callable[[Alike, int], list[str]]
"""Writes the args of jobs, of which the first has this number."""


class Unwritten(Sequence[str]):
    """The args of many jobs as JSON texts. They are not kept: a second look writes them again."""

    def __init__(self, jobs: Alike, write: Write) -> None:
        self._jobs = jobs
        self._write = write

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return self._write(self._jobs[at], at.indices(len(self))[0])
        at = range(len(self))[at]
        return self._write(self._jobs[at : at + 1], at)[0]

    def __len__(self) -> int:
        return len(self._jobs)
