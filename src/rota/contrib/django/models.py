"""Jobs as a model that is read, and never written: a view on PostgreSQL, a table on SQLite."""

from typing import Any, ClassVar

from django.db import models

from rota.contrib.django.fields import JsonText, Moment, job_table
from rota.model.states import State

NOT_EXPIRED = "keep_until IS NULL OR keep_until > (julianday('now') - 2440587.5) * 86400.0"
"""On SQLite: what is not past its retention. PostgreSQL's view says so itself."""


class Jobs(models.Manager["Job"]):
    """All jobs that are kept."""

    def get_queryset(self) -> Any:
        """The jobs, without those past their retention."""
        found = super().get_queryset()
        on_sqlite = found.model._meta.db_table == "rota_job"  # noqa: SLF001 - Django's own name
        return found.extra(where=[NOT_EXPIRED]) if on_sqlite else found  # noqa: S610 - a constant


class Job(models.Model):
    """A job, to be looked at. Act on it with `rota.jobs`."""

    id = models.BigIntegerField(primary_key=True)
    task = models.TextField()
    queue = models.TextField()
    state = models.TextField(choices=[(state.value, state.value) for state in State])
    priority = models.IntegerField()
    attempt = models.IntegerField()
    max_attempts = models.IntegerField()
    enqueued_at = Moment()
    scheduled_at = Moment(null=True)
    finished_at = Moment(null=True)
    args = JsonText()
    result = JsonText(null=True)
    errors = JsonText(null=True)
    unique_key = models.TextField(null=True)  # noqa: DJ001 - as it is stored
    headers = JsonText(null=True)

    objects: ClassVar[Jobs] = Jobs()

    class Meta:
        """No table of Django's."""

        managed = False
        db_table = job_table()
        ordering: ClassVar = ["-id"]
        default_permissions = ("view",)
        permissions: ClassVar = [
            ("retry_job", "Can retry jobs"),
            ("cancel_job", "Can cancel jobs"),
            ("discard_job", "Can discard jobs"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.task}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Refuse.

        Raises:
            TypeError: Always.
        """
        del args, kwargs
        message = "this model is read-only; enqueue a task instead"
        raise TypeError(message)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse.

        Raises:
            TypeError: Always.
        """
        del args, kwargs
        message = "this model is read-only; use rota.jobs.delete"
        raise TypeError(message)
