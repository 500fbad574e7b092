"""Telling Django that a task has finished: after its job is settled, in a thread of its own.

Receivers may use the ORM and take their time; the settler must not wait for them. They hear of jobs
that a worker of this process ran to their end; a job that was cancelled before that has no worker.
Those that a test kit has run are told of at once: the test's thread alone sees what they did.
"""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
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
        raised: What those of them have raised that have failed.
    """

    def __init__(self, events: Events, confined: Callable[[], bool]) -> None:
        self.begun: dict[JobId, datetime] = {}
        self.raised: dict[JobId, BaseException] = {}
        self._confined = confined
        self._thread: ThreadPoolExecutor | None = None
        events.subscribe(JobSettled, self._settled)
        events.subscribe(WorkerStopped, self._stopped)

    def _settled(self, event: JobSettled) -> None:
        began = self.begun.pop(event.job.id, None)
        raised = self.raised.pop(event.job.id, None)
        if began is None:
            return
        from rota.contrib.django.results import FINISHED

        if event.settlement.move not in FINISHED:
            return
        if self._confined():
            _send(event, began, raised)
        else:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "rota-django-signals")
            self._thread.submit(_send_apart, event, began, raised)

    def _stopped(self, event: WorkerStopped) -> None:
        """Let the receivers hear of the last tasks before the process ends."""
        del event
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()


def _send_apart(event: JobSettled, began: datetime, raised: BaseException | None) -> None:
    """Send in a thread that has connections of Django for this alone."""
    close_old_connections()
    try:
        _send(event, began, raised)
    finally:
        close_old_connections()


def _send(event: JobSettled, began: datetime, raised: BaseException | None) -> None:
    from rota.contrib.django.app import rota
    from rota.contrib.django.results import finished_result
    from rota.contrib.django.running import djangos
    from rota.contrib.django.tasks_api import task_finished

    try:
        task = djangos(rota.tasks[event.job.task])
        if task is None:  # only Django's tell when they begin
            return
        backend = task.get_backend()
        result = finished_result(backend, task, event.job, event.settlement, began)
        send = partial(task_finished.send_robust, type(backend), task_result=result)
        _handling(raised, send)
    except Exception:
        logger.exception("job %d: task_finished could not be sent", event.job.id)


def _handling(raised: BaseException | None, call: Callable[[], object]) -> None:
    """Call inside of the `except` of this error: Django's receiver logs the error being handled."""
    if raised is None:
        call()
        return
    try:
        raise raised  # noqa: TRY301 - its traceback is the handler's
    except BaseException:  # noqa: BLE001 - whatever the handler has raised
        call()
