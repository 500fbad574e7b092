"""Telling Django that a task has finished: after its job is settled, in a thread of its own.

Receivers may use the ORM and take their time; the settler must not wait for them. They hear of jobs that
a worker of this process ran to their end; a job that was cancelled before that has no worker.
"""

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import close_old_connections

from rota.dispatch import Events
from rota.events import JobSettled, WorkerStopped

if TYPE_CHECKING:
    from rota.model.job import JobId

logger = logging.getLogger("rota")


class Finishing:
    """Sends `task_finished`.

    Attributes:
        begun: When the runs began that are not settled yet.
    """

    def __init__(self, events: Events) -> None:
        self.begun: dict[JobId, datetime] = {}
        self._thread: ThreadPoolExecutor | None = None
        events.subscribe(JobSettled, self._settled)
        events.subscribe(WorkerStopped, self._stopped)

    def _settled(self, event: JobSettled) -> None:
        began = self.begun.pop(event.job.id, None)
        if began is None:
            return
        from rota.contrib.django.results import FINISHED

        if event.settlement.move in FINISHED:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "rota-django-signals")
            self._thread.submit(_send, event, began)

    def _stopped(self, event: WorkerStopped) -> None:
        """Let the receivers hear of the last tasks before the process ends."""
        del event
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()


def _send(event: JobSettled, began: datetime) -> None:
    from rota.contrib.django.app import rota
    from rota.contrib.django.results import finished_result
    from rota.contrib.django.running import djangos
    from rota.contrib.django.tasks_api import task_finished

    close_old_connections()
    try:
        task = djangos(rota.tasks[event.job.task])
        if task is None:  # only Django's tell when they begin
            return
        backend = task.get_backend()
        result = finished_result(backend, task, event.job, event.settlement, began)
        task_finished.send_robust(type(backend), task_result=result)
    except Exception:
        logger.exception("job %d: task_finished could not be sent", event.job.id)
    finally:
        close_old_connections()
