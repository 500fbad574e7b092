"""The backend of Django's tasks that keeps them as jobs of Rota.

TASKS = {"default": {"BACKEND": "rota.contrib.django.backend.RotaBackend"}}
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.core import checks

from rota.app.task import EnqueueCall
from rota.contrib.django.results import ready_result, task_result
from rota.contrib.django.running import WEEK, djangos, enqueueable
from rota.contrib.django.tasks_api import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    task_enqueued,
)
from rota.errors import ArgsError, ConfigError, JobNotFound
from rota.model.enqueued import Placing

if TYPE_CHECKING:
    from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaTask(Task):
    """A task of Django with Rota's own options: `@task(rota={"unique": "order:{order}"})`.

    There are `retry`, `max_attempts`, `timeout`, `retention`, `unique`, `limit`, `fair` and `wake`,
    as `Rota.task` and `Task.using` have them.
    """

    rota: Mapping[str, Any] = field(default_factory=dict, hash=False)


class RotaBackend(BaseTaskBackend):
    """Keeps Django's tasks as jobs of the project's app, `rota.contrib.django.rota`.

    `enqueue` joins the transaction of its database: the task is there if `atomic()` commits. A
    failed task is tried again, as `@task(rota={"max_attempts": …})` says, by default five times in
    all. OPTIONS may have `retention`: the seconds (or timedelta) that results of successful tasks
    stay, by default a week. Failed ones stay until they are deleted.
    """

    task_class = RotaTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        from rota.contrib.django.app import rota

        self.app = rota
        self.retention: float | timedelta = self.options.get("retention", WEEK)

    def validate_task(self, task: Task) -> None:
        """Refuse a task that could not run, with Rota's reasons, too.

        Raises:
            InvalidTask: It cannot.
        """
        super().validate_task(task)
        try:
            self.app.tasks.declare(task)
        except (ConfigError, ArgsError) as error:
            raise InvalidTask(str(error)) from error

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Store a task, in the current transaction.

        Raises:
            InvalidTask: The task is not one of this backend's.
            ArgsError: The args cannot be stored, or a key cannot be made of them.
            StoreError: The database refuses.
        """
        self.validate_task(task)
        result = ready_result(self, task, args, kwargs)
        known = enqueueable(self._known(task), task)
        call = EnqueueCall(known, ((tuple(result.args), result.kwargs),))
        stored = known.enqueuing.enqueue(call)
        object.__setattr__(result, "id", str(stored[0]))
        if stored.placings is not None and stored.placings[0] is not Placing.CREATED:
            return self.get_result(result.id)
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """The result of a task, whatever its state.

        Raises:
            TaskResultDoesNotExist: There is none of that id, or it is kept no longer.
        """
        result = self.find(result_id)
        if result is None:
            raise TaskResultDoesNotExist(result_id)
        return result

    def find(self, result_id: str) -> TaskResult | None:
        """The result of a task, or `None`."""
        if not (isinstance(result_id, str) and result_id.isascii() and result_id.isdecimal()):
            return None
        try:
            record = self.app.job(int(result_id)).record()
        except JobNotFound:
            return None
        task = djangos(self.app.tasks.get(record.task))
        return None if task is None else task_result(self, task, record)

    def check(self, **kwargs: Any) -> Iterable[checks.CheckMessage]:
        """What is wrong with the backend's settings."""
        from rota.contrib.django.checks import check_backend

        yield from super().check(**kwargs)
        yield from check_backend(self)

    def _known(self, task: Task) -> Any:
        """The task of Rota for one of Django, as workers will find it.

        Raises:
            InvalidTask: Workers would not take it for a task of this backend.
        """
        found = self.app.tasks.get(task.module_path)
        if djangos(found) is None:
            message = (
                f"{task.module_path} is not declared as a task of the backend {self.alias!r}, so its "
                f"workers would not run it; declare it there: @task(backend={self.alias!r})"
            )
            raise InvalidTask(message)
        return found
