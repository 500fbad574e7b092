"""Lifespans: users' context managers around a worker's run, or around the life of a child process.

Each makes at most one resource, which handlers and later lifespans are given.
`rota.worker.lifespans` enters and leaves them.
"""

import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, overload

from rota.app.executor import Executor
from rota.app.resources import Resources
from rota.args.provided import Need, is_provided
from rota.args.signature import needed, resolved
from rota.errors import ArgsError, ConfigError, LifespanFailed
from rota.model.durations import seconds

LEAVING = 10.0
"""Seconds that leaving a lifespan may take, unless it says otherwise."""

Manager = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]

L = TypeVar("L", bound=Callable[..., AsyncIterator[Any] | Iterator[Any] | Manager])


@dataclass(frozen=True, slots=True)
class Lifespan:
    """One lifespan.

    Attributes:
        name: Which its resource has, too.
        function: As the user wrote it.
        make: Gives the context manager.
        needs: The parameters that are given the resources of earlier ones.
        timeout: Seconds that leaving it may take.
    """

    name: str
    function: Callable[..., Any]
    make: Callable[..., Any]
    needs: tuple[Need, ...]
    timeout: float

    def manager(self, resources: Resources) -> Manager:
        """Its context manager, not entered yet.

        Raises:
            ConfigError: A resource is missing that it needs, or the function gives something else.
        """
        made = self.make(**resources.given(self.needs, f"lifespan {self.name!r}"))
        if isinstance(made, (AbstractAsyncContextManager, AbstractContextManager)):
            return made
        message = (
            f"lifespan {self.name!r} gave {type(made).__name__}, which is not a context "
            "manager; write a function that yields once"
        )
        raise ConfigError(message)

    def failed(self, error: BaseException) -> LifespanFailed:
        """The error of a worker whose lifespan could not be entered, or ended by itself."""
        return LifespanFailed(f"lifespan {self.name!r} failed: {type(error).__name__}: {error}")


class Lifespans:
    """Those of one app, in the order in which they are entered; a call registers one.

    Attributes:
        of_worker: Around a worker's run.
        of_children: Around the life of each child process.
    """

    def __init__(self) -> None:
        self.of_worker: list[Lifespan] = []
        self.of_children: list[Lifespan] = []

    @overload
    def __call__(self, function: L, /) -> L: ...
    @overload
    def __call__(
        self,
        /,
        *,
        name: str | None = None,
        executor: Executor | str | None = None,
        timeout: float | timedelta = LEAVING,
    ) -> Callable[[L], L]: ...
    def __call__(
        self,
        function: Any = None,
        /,
        *,
        name: str | None = None,
        executor: Executor | str | None = None,
        timeout: float | timedelta = LEAVING,
    ) -> Any:
        """Surround each worker's run with a function that yields once: `@rota.lifespan`.

        A worker enters the app's lifespans before it claims, in the order of their registration,
        and leaves them in the reverse order when its last handler has ended. What one yields is a
        resource, for handlers and later lifespans with a parameter `= rota.PROVIDED`. An
        `async def` lives on the worker's loop, a `def` in a thread of its own.

        Args:
            function: A generator function, sync or async, or one that gives a context manager.
            name: The name of the resource; by default the function's.
            executor: `process`: around each child process instead, from its start to its end.
            timeout: Seconds (or a timedelta) that it may take to end; after that it is abandoned.

        Raises:
            ConfigError: It cannot be a lifespan, or there is already one of that name.
        """

        def register(function: L) -> L:
            self._add(made(function, name, timeout), executor)
            return function

        return register if function is None else register(function)

    def _add(self, lifespan: Lifespan, executor: Executor | str | None) -> None:
        of_child = _of_child(executor)
        kept = self.of_children if of_child else self.of_worker
        if any(lifespan.name == other.name for other in kept):
            message = (
                f"there is already a lifespan named {lifespan.name!r}; give one of them a name="
            )
            raise ConfigError(message)
        if of_child:
            _check_child(lifespan)
        kept.append(lifespan)


def made(function: Callable[..., Any], name: str | None, timeout: float | timedelta) -> Lifespan:
    """A lifespan of a function.

    Raises:
        ConfigError: It cannot be one.
    """
    name = name or getattr(function, "__name__", None)
    if not callable(function) or name is None:
        message = (
            f"a lifespan is made of a function that yields once, not of {type(function).__name__}"
        )
        raise ConfigError(message)
    if inspect.iscoroutinefunction(function):
        message = f"lifespan {name!r} never yields; yield once, at the point where the worker runs"
        raise ConfigError(message)
    make = function
    if inspect.isasyncgenfunction(function):
        make = contextlib.asynccontextmanager(function)
    elif inspect.isgeneratorfunction(function):
        make = contextlib.contextmanager(function)
    return Lifespan(name, function, make, _needs(function, name), seconds(timeout, "timeout"))


def _of_child(executor: Executor | str | None) -> bool:
    if executor is None:
        return False
    if Executor.named(executor) is Executor.PROCESS:
        return True
    message = (
        f"lifespan: executor={str(executor)!r} is not possible; give executor='process' for child "
        "processes, or leave it out: a worker's loop and threads share its lifespans"
    )
    raise ConfigError(message)


def _check_child(lifespan: Lifespan) -> None:
    """Refuse what a child process cannot enter, or not find."""
    function = lifespan.function
    if inspect.isasyncgenfunction(inspect.unwrap(function)):
        message = (
            f"lifespan {lifespan.name!r} is async, but a child process has no event loop; "
            "write it as a def"
        )
        raise ConfigError(message)
    if "<locals>" in function.__qualname__:
        message = (
            f"lifespan {lifespan.name!r} is for child processes, which must be able to import it; "
            "define it at the top level of a module"
        )
        raise ConfigError(message)


def _needs(function: Callable[..., Any], name: str) -> tuple[Need, ...]:
    """The resources that a lifespan is given; it is given nothing else."""
    needs = []
    try:
        for each in inspect.signature(function).parameters.values():
            subject = f"parameter `{each.name}` of lifespan {name!r}"
            if is_provided(each):
                needs.append(needed(each, resolved(function, each, subject), subject))
            elif each.default is each.empty and each.kind not in (
                each.VAR_POSITIONAL,
                each.VAR_KEYWORD,
            ):
                message = (
                    f"{subject} gets no value; write `{each.name}: … = rota.PROVIDED` for what "
                    "an earlier lifespan yields, or give it a default"
                )
                raise ConfigError(message)
    except ArgsError as error:
        raise ConfigError(str(error)) from error
    return tuple(needs)
