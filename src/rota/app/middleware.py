"""Middleware: users' functions around enqueueing and around running jobs.

Each one gets what is about to happen and the rest of the way as `call_next`; it calls that, looks
at what comes back, changes it, or raises instead (the onion of Starlette). The one that was
registered first is the outermost. Where none is registered, nothing is called.

An `async def` cannot wait inside a blocking `enqueue`, nor a `def` inside the event loop. So each
way of enqueueing has its own kind, and if only the other kind is registered, it refuses: a check
that guards `enqueue` must not be forgotten by `aenqueue`. Twins are one middleware in both kinds,
and change nothing about that for the others.

Middleware around runs stays in the worker, where child processes cannot see what it has set. What
is to be seen there crosses over as texts: see `Crossing`.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from rota.app.task import EnqueueCall
from rota.errors import ConfigError
from rota.model.enqueued import Enqueued
from rota.model.job import JobId

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

NAMED = 5
"""Ids that an error names, at most."""


class Crossing(NamedTuple):
    """What goes with a job to a child process, such as a trace.

    Attributes:
        send: Called in the worker, inside the middleware around the run; gives names and texts.
        receive: A function of these and `call_next`, in the child, around the handler.
    """

    send: Callable[[], Mapping[str, str]]
    receive: Callable[[Mapping[str, str], Callable[[], Any]], Any]


class Middleware:
    """What is registered in one app. The attributes are empty where nothing is."""

    __slots__ = ("_twins", "crossings", "enqueueing", "running", "running_in_threads")

    def __init__(self) -> None:
        self.enqueueing: list[Callable[..., Any]] = []
        self.running: list[Callable[..., Any]] = []
        self.running_in_threads: list[Callable[..., Any]] = []
        self.crossings: dict[str, Crossing] = {}
        self._twins: set[Callable[..., Any]] = set()

    def around_enqueue(self, function: F) -> F:
        """Register a function of an `EnqueueCall` and `call_next`."""
        self.enqueueing.append(_checked(function))
        return function

    def twins_around_enqueue(self, function: Callable[..., Any], twin: Callable[..., Any]) -> None:
        """Register the same middleware for `enqueue` and, as an `async def`, for `aenqueue`."""
        self._twins |= {self.around_enqueue(function), self.around_enqueue(twin)}

    def around_run(self, function: F) -> F:
        """Register a function of a context and `call_next`."""
        is_async = inspect.iscoroutinefunction(function)
        (self.running if is_async else self.running_in_threads).append(_checked(function))
        return function

    def cross(self, name: str, crossing: Crossing) -> None:
        """Register what goes with jobs to child processes; a child knows it by the name."""
        self.crossings[name] = crossing

    def sent(self) -> dict[str, Mapping[str, str]]:
        """What goes with a job to a child process, by the names of the crossings."""
        return {name: crossing.send() for name, crossing in self.crossings.items()}

    def received(
        self, sent: dict[str, Mapping[str, str]], call: Callable[[], Any]
    ) -> Callable[[], Any]:
        """A handler's call, in a child process, inside of what was sent along."""
        for name in reversed(sent):
            # A child need not have registered what its parent has.
            if name in self.crossings:
                call = partial(self.crossings[name].receive, sent[name], call)
        return call

    def enqueue(self, call: EnqueueCall, store: Callable[[EnqueueCall], Enqueued]) -> Enqueued:
        """Store jobs through the middleware.

        Raises:
            ConfigError: All of it is for async code, or it gave back other ids than it got.
        """
        stored: list[JobId] = []

        def innermost(call: EnqueueCall) -> list[JobId]:
            jobs = store(call)
            stored.extend(jobs)
            return jobs

        call_next: Callable[[EnqueueCall], list[JobId]] = innermost
        for function in reversed(self._fitting(is_async=False)):
            call_next = _step(function, call_next)
        return _one_each(call, call_next(call), stored)

    async def aenqueue(
        self, call: EnqueueCall, store: Callable[[EnqueueCall], Awaitable[Enqueued]]
    ) -> Enqueued:
        """`enqueue` for async code."""
        stored: list[JobId] = []

        async def innermost(call: EnqueueCall) -> list[JobId]:
            jobs = await store(call)
            stored.extend(jobs)
            return jobs

        call_next: Callable[[EnqueueCall], Awaitable[list[JobId]]] = innermost
        for function in reversed(self._fitting(is_async=True)):
            call_next = _step(function, call_next)
        return _one_each(call, await call_next(call), stored)

    def _fitting(self, *, is_async: bool) -> list[Callable[..., Any]]:
        found = [
            function
            for function in self.enqueueing
            if inspect.iscoroutinefunction(function) is is_async
        ]
        alone = [function for function in self.enqueueing if function not in self._twins]
        if alone and self._twins.issuperset(found):
            names = ", ".join(function.__qualname__ for function in alone)
            mine, other = ("aenqueue", "an async def") if is_async else ("enqueue", "a def")
            message = (
                f"the middleware around enqueue ({names}) does not fit {mine}, which needs {other}; "
                "register one with @rota.around_enqueue, so that no job bypasses it"
            )
            raise ConfigError(message)
        return found


def wrapped(
    around: Sequence[Callable[..., Any]], context: object, call: Callable[[], Any]
) -> Callable[[], Any]:
    """A run inside its middleware; what it gives is awaitable if `around` and `call` are async."""
    for function in reversed(around):
        call = partial(function, context, call)
    return call


def _step(
    function: Callable[..., Any], call_next: Callable[[EnqueueCall], T]
) -> Callable[[EnqueueCall], T]:
    return lambda call: function(call, call_next)


def _checked(function: F) -> F:
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError) as error:
        message = (
            f"{getattr(function, '__qualname__', function)!s}: middleware takes two parameters: "
            "what is called, and call_next"
        )
        raise ConfigError(message) from error
    return function


def _one_each(call: EnqueueCall, jobs: list[JobId], stored: Sequence[JobId]) -> Enqueued:
    """What middleware gave back, if it is one id of those that are stored for each job."""
    known = set(stored)
    if not isinstance(jobs, list):
        got = type(jobs).__name__
    elif len(jobs) != len(call.jobs):
        got = f"{len(jobs)} ids"
    elif all(isinstance(job, int) and job in known for job in jobs):
        return Enqueued.from_ids(jobs)
    else:
        got = "ids of its own"
    done = "Nothing was stored"
    if stored:
        # A caller that takes this for a failed enqueue and tries again would store each job twice.
        ids = ", ".join(map(str, stored[:NAMED])) + (", …" if stored[NAMED:] else "")
        done = (
            f"{len(stored)} job(s) were stored all the same ({ids}): do not enqueue them again, "
            "unless your transaction was rolled back"
        )
    message = (
        f"the middleware around enqueue returned {got} for {len(call.jobs)} job(s) of "
        f"{call.task.name!r}; return what call_next returns, or raise before calling it. {done}"
    )
    raise ConfigError(message)
