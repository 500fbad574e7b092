"""The tasks of an app, by name."""

from typing import Any

from rota.app.batch import BatchTask
from rota.app.task import Task
from rota.args import ResultCodec
from rota.errors import TaskAlreadyRegistered, TaskNotFound


class Tasks(dict[str, Task[..., Any, Any]]):
    """A dictionary of the tasks that are registered in this process."""

    def register(self, task: Task[..., Any, Any]) -> None:
        """Add a task.

        Raises:
            TaskAlreadyRegistered: There is already a task of that name.
        """
        if self.setdefault(task.name, task) is not task:
            message = f"there is already a task named {task.name!r}; give one of them a name="
            raise TaskAlreadyRegistered(message)

    def find(self, name: str) -> Task[..., Any, Any]:
        """The task of that name.

        Raises:
            TaskNotFound: There is none in this process.
        """
        try:
            return self[name]
        except KeyError:
            message = (
                f"no task named {name!r} is registered here; import the module that defines it"
            )
            raise TaskNotFound(message) from None

    def meant(self, given: object) -> object:
        """The task that was given in another form, as some integrations have it; else what was given."""
        return given

    @property
    def batch(self) -> dict[str, BatchTask[Any, Any]]:
        """Those whose handlers serve many jobs in one call."""
        return {name: task for name, task in self.items() if isinstance(task, BatchTask)}

    def codec(self, name: str) -> ResultCodec:
        """What reads the results of the task; those of an unknown task are what JSON says."""
        return self[name].result_codec if name in self else ResultCodec(Any, name)
