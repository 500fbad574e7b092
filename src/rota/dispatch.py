"""Who hears of what: events, and those that have subscribed to them.

A subscriber that raises is logged and never stops the work. An event of a kind without subscribers
is not even made.
"""

import inspect
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from rota.events import ENDINGS, Event, JobsEnqueued
from rota.model.job import ClaimedJob, Following
from rota.model.settlement import Settlement

if TYPE_CHECKING:
    from rota.subscribers import AsyncSubscribers

logger = logging.getLogger("rota")

E = TypeVar("E", bound=Event)


class Events:
    """Delivers events to their subscribers, in the thread in which they happen; to async ones later.

    A subscriber to a kind hears all kinds that derive from it: `Event` is everything.
    """

    def __init__(self) -> None:
        self.asynchronous: AsyncSubscribers | None = None
        self._subscribers: dict[type[Event], list[Callable[[Event], None]]] = defaultdict(list)
        # By kind: the subscribers to it, to the kinds it derives from, and to its finer kinds.
        self._listeners: dict[type[Event], list[object]] = defaultdict(list)

    def subscribe(
        self, kind: type[E], handler: Callable[[E], Coroutine[Any, Any, None] | None]
    ) -> Callable[[], None]:
        """Call `handler` with every event of `kind`; returns the function that ends it.

        An `async def` is called later, as `rota.subscribers` says.
        """
        if _is_async(handler):
            from rota.subscribers import AsyncSubscribers  # asyncio is no part of `import rota`

            self.asynchronous = self.asynchronous or AsyncSubscribers()
            handler = self.asynchronous.line(handler)
        lists: list[list[Any]] = [self._subscribers[kind]]
        lists += [self._listeners[related] for related in (*_below(kind), *_above(kind))]
        for handlers in lists:
            handlers.append(handler)

        def end() -> None:
            while lists:
                lists.pop().remove(handler)

        return end

    def wanted(self, kind: type[Event]) -> bool:
        """Whether `kind` has subscribers; hot paths ask before they make an event."""
        return bool(self._listeners.get(kind))

    def listeners(self, kind: type[Event]) -> Sequence[object]:
        """A list of the subscribers to `kind` that stays up to date: for loops over many jobs."""
        return self._listeners[kind]

    def emit(self, event: Event) -> None:
        """Tell the subscribers to the event's kind, and to the kinds it derives from."""
        for handler in self.subscribed(event):
            try:
                handler(event)
            except Exception:
                logger.exception("a subscriber to %s failed", type(event).__name__)

    def subscribed(self, event: Event) -> Iterator[Callable[[Any], None]]:
        """The subscribers to the event's kind, and to the kinds it derives from."""
        for kind in type(event).__mro__[:-1]:
            yield from tuple(self._subscribers.get(kind, ()))

    def settled(self, job: ClaimedJob, settlement: Settlement) -> None:
        """Emit the kind of `JobSettled` that this settlement is, if it has subscribers."""
        kind = ENDINGS[settlement.move]
        if self.wanted(kind):
            self.emit(kind(job, settlement))

    def following(self, came: Sequence[Following]) -> None:
        """Emit `JobsEnqueued` for successors, if it has subscribers."""
        if came and self.wanted(JobsEnqueued):
            for each in came:
                if each.jobs:
                    self.emit(JobsEnqueued(*each))

    @contextmanager
    def collect(self, kind: type[E]) -> Iterator[list[E]]:
        """Collect the events of a kind while the block runs: for tests.

        Example:
            `with rota.events.collect(JobFailed) as failures: …`
        """
        seen: list[E] = []
        end = self.subscribe(kind, seen.append)
        try:
            yield seen
        finally:
            end()


def _is_async(handler: Any) -> TypeGuard[Callable[[Any], Coroutine[Any, Any, None]]]:
    called = getattr(handler, "__call__", None)  # noqa: B004 - of an object with that method
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(called)


def _below(kind: type[Event]) -> Iterator[type[Event]]:
    """A kind, and all that derive from it."""
    yield kind
    for finer in kind.__subclasses__():
        yield from _below(finer)


def _above(kind: type[Event]) -> Iterator[type[Event]]:
    """The kinds from which a kind derives."""
    return (base for base in kind.__mro__[1:] if issubclass(base, Event))
