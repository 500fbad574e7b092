"""The events of a worker of several apps: to whose subscribers each of them is told.

What concerns a job, or the jobs of a task, is told to the app that has the task; everything else,
and a job of a task that none has, to all apps.
"""

from collections.abc import Callable, Container, Coroutine, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from rota.dispatch import Events
from rota.events import Event, JobsEnqueued, RelayInterrupted

E = TypeVar("E", bound=Event)


class EventsOfApps(Events):
    """Delivers the events of one worker to the subscribers of several apps.

    Args:
        tasks: The names of each app's tasks, by its events.
    """

    def __init__(self, tasks: Mapping[Events, Container[str]]) -> None:
        super().__init__()
        self._tasks = tasks

    def subscribe(
        self, kind: type[E], handler: Callable[[E], Coroutine[Any, Any, None] | None]
    ) -> Callable[[], None]:
        """Subscribe in each app."""
        ends = [events.subscribe(kind, handler) for events in self._tasks]

        def end() -> None:
            for each in ends:
                each()

        return end

    def wanted(self, kind: type[Event]) -> bool:
        """Whether an app has subscribers to `kind`."""
        return any(events.wanted(kind) for events in self._tasks)

    def listeners(self, kind: type[Event]) -> Sequence[object]:
        """The subscribers of all apps, as a sequence that stays up to date."""
        return _Chained([events.listeners(kind) for events in self._tasks])

    def subscribed(self, event: Event) -> Iterator[Callable[[Any], None]]:
        """The subscribers to be told; one that several apps have is told once."""
        return iter(
            dict.fromkeys(chain(*(each.subscribed(event) for each in self._concerned(event))))
        )

    def _concerned(self, event: Event) -> list[Events]:
        name = _task(event)
        own = [events for events, tasks in self._tasks.items() if name in tasks]
        return own or list(self._tasks)


class _Chained(Sequence[object]):
    """Several sequences, one after another."""

    def __init__(self, parts: Sequence[Sequence[object]]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __getitem__(self, index: Any) -> Any:
        return [*chain(*self._parts)][index]


def _task(event: Event) -> str | None:
    """The name of the task that an event is about, or whose job."""
    if isinstance(event, JobsEnqueued):
        return event.task
    if isinstance(event, RelayInterrupted):
        return event.relay
    job = getattr(event, "job", None)
    return None if job is None else job.task
