"""The page of jobs in Django's admin."""

import itertools
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import TestCase
from django.urls import reverse

from rota import State
from rota.contrib.django import rota
from rota.contrib.django.models import Job
from tests.contrib.django.suite.chores import note, pay

numbers = itertools.count(1)
PAGE = "admin:rota_job_changelist"


class Admin(TestCase):
    """In the transaction of a test: the page looks and acts through Django's connection."""

    def setUp(self) -> None:
        self.queue = f"admin-{next(numbers)}"
        self.jobs = [note.using(queue=self.queue).enqueue(number) for number in (1, 2)]
        self.user = User.objects.create_user("ada", password="secret", is_staff=True)
        self.client.force_login(self.user)

    def allow(self, *names: str) -> None:
        found = Permission.objects.filter(codename__in=[f"{name}_job" for name in names])
        self.assertEqual(len(found), len(names))
        self.user.user_permissions.set(found)

    def page(self, **query: str) -> Any:
        return self.client.get(reverse(PAGE), {"queue": self.queue, **query})

    def act(self, action: str, *jobs: int) -> Any:
        chosen = {"action": action, "_selected_action": [str(job) for job in jobs]}
        return self.client.post(reverse(PAGE), chosen, follow=True)

    def listed(self, response: Any) -> list[int]:
        self.assertEqual(response.status_code, 200)
        return [job.id for job in response.context["cl"].result_list]

    def test_forbidden(self) -> None:
        """Without the permission to view there is no page."""
        self.assertEqual(self.page().status_code, 403)

    def test_list(self) -> None:
        """The jobs are listed, the newest first, and found by id, task and state."""
        self.allow("view")
        first, second = (job.id for job in self.jobs)
        self.assertEqual(self.listed(self.page()), [second, first])
        self.assertEqual(self.listed(self.page(q=str(first))), [first])
        self.assertEqual(self.listed(self.page(q="note")), [second, first])
        self.assertEqual(self.listed(self.page(q="99999999")), [])
        self.assertEqual(self.listed(self.page(state="completed")), [])
        self.assertEqual(self.listed(self.page(state="available")), [second, first])

    def test_one(self) -> None:
        """A job is shown, and cannot be changed."""
        self.allow("view")
        address = reverse("admin:rota_job_change", args=[self.jobs[0].id])
        self.assertContains(self.client.get(address), "&quot;number&quot;")
        self.assertEqual(self.client.post(address, {"queue": "x"}).status_code, 403)
        self.assertEqual(self.client.get(reverse("admin:rota_job_add")).status_code, 403)

    def test_secrets(self) -> None:
        """Args that a task hides are hidden here, too; others are shown."""
        self.allow("view")
        job = pay.enqueue(7, "s3cr3t")
        shown = self.client.get(reverse("admin:rota_job_change", args=[job.id]))
        self.assertContains(shown, "&quot;order&quot;")
        self.assertContains(shown, "***")
        self.assertNotContains(shown, "s3cr3t")

    def test_actions_by_permission(self) -> None:
        """Each action is there for those who may, and refused to others."""
        self.allow("view", "cancel")
        self.assertContains(self.page(), "Cancel the selected jobs")
        self.assertNotContains(self.page(), "Retry the selected jobs")
        self.assertNotContains(self.page(), "Discard the selected jobs")
        self.act("discard", self.jobs[0].id)
        self.assertEqual(self.jobs[0].status, State.AVAILABLE)

    def test_cancel_retry_discard(self) -> None:
        """Jobs are cancelled, made available again, and deleted."""
        self.allow("view", "cancel", "retry", "discard")
        one, two = self.jobs
        self.assertContains(self.act("cancel", one.id, two.id), "2 of 2 jobs cancelled")
        self.assertEqual((one.status, two.status), (State.CANCELLED, State.CANCELLED))
        self.assertContains(self.act("retry", one.id), "1 of 1 jobs retried")
        self.assertEqual((one.status, two.status), (State.AVAILABLE, State.CANCELLED))
        self.assertContains(self.act("discard", one.id, two.id), "2 of 2 jobs discarded")
        self.assertEqual(self.listed(self.page()), [])

    def test_retry_of_a_flow(self) -> None:
        """A job that has ended its node is left to a retry of its flow, which the page names."""
        self.allow("view", "retry")
        with rota.flow("order") as flow:
            first = flow.add(note.using(queue=self.queue), 3)
            flow.add(note.using(queue=self.queue), 4, after=[first])
        [handle] = [job for job in rota.jobs.list(queue=self.queue) if job.args == '{"number":3}']
        flow.handle.cancel()
        said = self.act("retry", handle.id)
        self.assertContains(said, "0 of 1 jobs retried")
        self.assertContains(said, f"whose nodes have ended: {flow.handle.id}")

    def test_read_only(self) -> None:
        """The model writes nothing."""
        job = Job.objects.get(id=self.jobs[0].id)
        self.assertEqual((job.task, job.state, job.args), ("note", "available", '{"number":1}'))
        self.assertEqual(job.enqueued_at, self.jobs[0].record().enqueued_at)
        for write in (job.save, job.delete):
            with self.assertRaisesRegex(TypeError, "read-only"):
                write()
