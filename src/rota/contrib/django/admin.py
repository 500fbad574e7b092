"""The page of jobs in Django's admin: to look, and to retry, cancel and discard by permission."""

from collections.abc import Callable, Sequence, Sized
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.auth import get_permission_codename
from django.http import HttpRequest

from rota.contrib.django.app import rota
from rota.contrib.django.models import Job
from rota.model.job import JobId
from rota.model.redaction import redacted_args, redacted_names
from rota.model.states import State


@admin.register(Job)
class JobAdmin(admin.ModelAdmin):
    """Jobs, the newest first. A search is for an id, or for the name of a task."""

    list_display: ClassVar = [
        "id",
        "task",
        "queue",
        "state",
        "attempt",
        "enqueued_at",
        "finished_at",
    ]
    list_filter: ClassVar = ["state", "queue"]
    search_fields: ClassVar = ["=id", "=task"]
    search_help_text = "The id of a job, or the whole name of a task"
    actions: ClassVar = ["retry", "cancel", "discard"]
    exclude: ClassVar = ["args", "headers"]
    readonly_fields: ClassVar = ["shown_args"]
    # Else each page would count all jobs once more.
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never: tasks are enqueued by code."""
        del request
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: jobs change by actions alone."""
        del request, obj
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: `discard` deletes."""
        del request, obj
        return False

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Whether the user may retry jobs."""
        return self._may(request, "retry")

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Whether the user may cancel jobs."""
        return self._may(request, "cancel")

    def has_discard_permission(self, request: HttpRequest) -> bool:
        """Whether the user may discard jobs."""
        return self._may(request, "discard")

    @admin.display(description="args")
    def shown_args(self, job: Job) -> str:
        """The args, without secrets."""
        return redacted_args(job.args, redacted_names(job.headers))

    @admin.action(permissions=["retry"], description="Retry the selected jobs")
    def retry(self, request: HttpRequest, queryset: Any) -> None:
        """Make them available now, with all their attempts."""
        jobs = self._act(request, queryset, rota.jobs.retry, "retried")
        if left := rota.flows.left_to_retry(rota.jobs.get(jobs)):
            flows = ", ".join(map(str, sorted({member.flow for member in left.values()})))
            text = f"{len(left)} of them are left to a retry of their flows, whose nodes have ended: {flows}"
            self.message_user(request, text, messages.WARNING)

    @admin.action(permissions=["cancel"], description="Cancel the selected jobs")
    def cancel(self, request: HttpRequest, queryset: Any) -> None:
        """Cancel those that wait, and ask running ones to stop."""
        self._act(request, queryset, _cancelled, "cancelled, or asked to stop")

    @admin.action(permissions=["discard"], description="Discard the selected jobs: delete them")
    def discard(self, request: HttpRequest, queryset: Any) -> None:
        """Delete those that are not running."""
        self._act(request, queryset, rota.jobs.delete, "discarded")

    def _may(self, request: HttpRequest, what: str) -> bool:
        name = get_permission_codename(what, self.opts)
        return bool(request.user.has_perm(f"{self.opts.app_label}.{name}"))

    def _act(
        self, request: HttpRequest, queryset: Any, act: Callable[[list[int]], Sized], done: str
    ) -> list[int]:
        """Act on the selected jobs, and say how many it has changed; gives the selected ones."""
        jobs = list(queryset.values_list("id", flat=True))
        number = len(act(jobs))
        level = messages.SUCCESS if number == len(jobs) else messages.WARNING
        self.message_user(request, f"{number} of {len(jobs)} jobs {done}", level)
        return jobs


def _cancelled(jobs: Sequence[int]) -> list[JobId]:
    """Cancel jobs; those that have not finished otherwise."""
    states = rota.jobs.cancel(jobs)
    return [job for job, state in states.items() if state in {State.CANCELLED, State.RUNNING}]
