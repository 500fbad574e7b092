"""The tasks of an app in a Django project: Rota's own, and those of Django that its backends have.

A task of Django is stored under its module path. A worker that claims a job of a path that it does
not know yet imports it, and takes what is there only if it is a task of one of this app's backends.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from django.utils.module_loading import import_string

from rota.app.tasks import Tasks

if TYPE_CHECKING:
    from rota.app.app import Rota
    from rota.app.task import Task
    from rota.args import ResultCodec
    from rota.contrib.django.tasks_api import Task as DjangosTask


class DjangoTasks(Tasks):
    """The tasks by name; those of Django are found when they are asked for."""

    def __init__(self, app: Rota) -> None:
        super().__init__()
        self._app = app

    def __missing__(self, name: str) -> Task[..., Any, Any]:
        task = self._imported(name)
        if task is None:
            raise KeyError(name)
        return self.setdefault(name, task)

    def get(self, name: str, default: Any = None, /) -> Any:
        """The task of that name, imported if need be."""
        try:
            return self[name]
        except KeyError:
            return default

    def codec(self, name: str) -> ResultCodec:
        """What reads the results of the task; those of an unknown task are what JSON says."""
        self.get(name)
        return super().codec(name)

    def meant(self, given: object) -> object:
        """The task of Rota that runs one of Django's, with that one's queue, priority and time."""
        from rota.contrib.django.running import enqueueable
        from rota.contrib.django.tasks_api import Task

        if not isinstance(given, Task) or (known := self.get(given.module_path)) is None:
            return given
        return enqueueable(known, given)

    def _imported(self, path: str) -> Task[..., Any, Any] | None:
        from rota.contrib.django.running import runnable
        from rota.contrib.django.tasks_api import Task

        try:
            found = import_string(path)
        except ImportError:
            return None
        if not isinstance(found, Task) or found.module_path != path:
            return None
        return runnable(self._app, found)

    def declare(self, task: DjangosTask) -> None:
        """Note a task of Django that is being declared: its module has nothing of that name yet.

        Any other, such as a task of another backend with `using(backend=…)`, workers would not
        take.

        Raises:
            ConfigError: One of its options cannot be used.
        """
        from rota.contrib.django.running import runnable

        if task.module_path in self:
            return
        made = runnable(self._app, task)
        module = sys.modules.get(task.func.__module__)
        if made is not None and not hasattr(module, task.func.__qualname__):
            self[task.module_path] = made
