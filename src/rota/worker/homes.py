"""Homes: what the handlers of each app have around them in a worker."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rota.app.app import Rota
from rota.app.bulk_job import NAME as BULK
from rota.app.resources import Resources
from rota.app.task import Task


class Home:
    """That of one app.

    Attributes:
        number: Which of the worker's apps it is.
        resources: What the app's lifespans have yielded.
        around: Its middleware around all runs.
        around_threads: Its middleware around runs in threads.
        of_children: Its lifespans of child processes.
    """

    __slots__ = ("app", "around", "around_threads", "number", "of_children", "resources")

    def __init__(
        self, number: int, app: Rota, resources: Resources, *, middleware: bool = True
    ) -> None:
        self.number = number
        self.app = app
        self.resources = resources
        self.around: list[Callable[..., Any]] = app.middleware.running if middleware else []
        self.around_threads: list[Callable[..., Any]] = (
            app.middleware.running_in_threads if middleware else []
        )
        self.of_children = app.lifespan.of_children


class Homes:
    """The home of each task."""

    def __init__(self, homes: Iterable[tuple[Rota, Resources]]) -> None:
        every = [Home(number, app, resources) for number, (app, resources) in enumerate(homes)]
        # Each app has a database of its own, and its tasks know it.
        self._homes = {home.app.database: home for home in every}
        # Users' middleware is written for users' tasks.
        first = every[0]
        self._own = Home(0, first.app, first.resources, middleware=False)

    def __iter__(self) -> Iterator[Home]:
        return iter(self._homes.values())

    def of(self, task: Task[..., Any, Any]) -> Home:
        """The home of this task."""
        if task.name == BULK:
            return self._own
        return self._homes[task.enqueuing.database]

    def check(self) -> None:
        """Find what the handlers need that run in the worker itself.

        Raises:
            ConfigError: A resource is missing.
        """
        for home in self:
            for task in home.app.tasks.values():
                if not task.executor.elsewhere:
                    home.resources.of(task)
