"""Where a task's handler runs."""

import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Self

from rota.errors import ConfigError


class Executor(StrEnum):
    """Where a handler runs."""

    LOOP = "loop"
    """On the worker's event loop: `async def`."""
    THREAD = "thread"
    """In a thread of the worker: `def`, for work that waits."""
    PROCESS = "process"
    """In a child process: for work that computes, may crash, or must be stopped by force."""
    DASK = "dask"
    """On a Dask cluster: for work that needs more than one machine's cores or memory."""

    RAY = "ray"
    """On a Ray cluster: for work that needs GPUs, or more than one machine's cores or memory."""

    @property
    def elsewhere(self) -> bool:
        """Whether handlers run in other processes: args go there, and results come back, as JSON."""
        return self in {Executor.PROCESS, Executor.DASK, Executor.RAY}

    @classmethod
    def named(cls, name: str) -> Self:
        """The executor of that name.

        Raises:
            ConfigError: There is none.
        """
        try:
            return cls(name)
        except ValueError as error:
            message = f"executor: must be one of {', '.join(cls)}, not {name!r}"
            raise ConfigError(message) from error

    @classmethod
    def fitting(cls, function: Callable[..., object], wanted: Self | None, name: str) -> Self:
        """The executor of a task's function: the one that is wanted, or the usual one of its kind.

        Raises:
            ConfigError: What is wanted does not fit the function.
        """
        is_async = inspect.iscoroutinefunction(function)
        if wanted is None:
            return cls("loop" if is_async else "thread")
        if is_async is not (wanted is cls.LOOP):
            fitting = (
                "an async def runs on the loop" if is_async else "a def cannot run on the loop"
            )
            message = f"task {name!r}: executor={wanted.value!r} does not fit; {fitting}"
            raise ConfigError(message)
        return wanted
