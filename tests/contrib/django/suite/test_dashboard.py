"""The dashboard below a path of a Django project."""

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.test import Client, TransactionTestCase, override_settings
from django.urls import include, path

from rota import State
from rota.contrib.django import rota
from rota.contrib.django.dashboard import dashboard
from rota.dashboard import Access
from rota.dashboard.pages import ROUTES
from tests.contrib.django.suite.chores import note


def access(request: HttpRequest) -> Access:
    """Superusers may do everything, other users may look."""
    if request.user.is_superuser:
        return Access.all(who=request.user.username)
    return Access.read() if request.user.is_authenticated else Access.none()


urlpatterns = [path("ops/rota/", include(dashboard(access=access)))]


@override_settings(ROOT_URLCONF=__name__)
class Dashboard(TransactionTestCase):
    """With Django's users, and without its tokens. It looks through connections of Rota's own."""

    def setUp(self) -> None:
        self.job = note.using(queue="dashboard").enqueue(1)
        self.client = Client(enforce_csrf_checks=True)
        self.addCleanup(rota.close)

    def login(self, **more: Any) -> None:
        self.client.force_login(User.objects.create_user("ada", password="secret", **more))

    def test_strangers(self) -> None:
        """They see nothing."""
        self.assertEqual(self.client.get("/ops/rota/").status_code, 403)

    def test_reading(self) -> None:
        """A user sees the pages, and may not act."""
        self.login()
        shown = self.client.get(f"/ops/rota/jobs/{self.job.id}")
        self.assertContains(shown, "available")
        self.assertEqual(shown.headers["content-security-policy"][:18], "default-src 'none'")
        self.assertContains(self.client.get("/ops/rota/queue", {"name": "dashboard"}), "dashboard")
        url = f"/ops/rota/jobs/{self.job.id}/cancel"
        own = {"sec-fetch-site": "same-origin"}
        self.assertEqual(self.client.post(url, {"sure": "yes"}, headers=own).status_code, 403)

    def test_every_page(self) -> None:
        """Each is there, for people and for programs."""
        self.login(is_superuser=True)
        with rota.flow("dashboard") as flow:
            flow.add(note, 1)
        for route in ROUTES:
            if route.method == "GET":
                one = flow.handle if route.path.startswith("/flows") else self.job
                page = route.path.replace("{id}", str(one.id)).replace("{name}", "rota.css")
                for accept in ("text/html", "application/json"):
                    shown = self.client.get(
                        f"/ops/rota{page}", {"name": "dashboard"}, headers={"accept": accept}
                    )
                    self.assertEqual(shown.status_code, 200, page)

    def test_everything_that_matches(self) -> None:
        """Is asked about, and done by a job."""
        self.login(is_superuser=True)
        note.using(queue="everything").enqueue(1)
        form = {"which": "all", "queue": "everything", "state": "available"}
        asked = self.post("/jobs/cancel", form)
        self.assertContains(asked, "Cancel 1 job?")
        began = self.post("/jobs/cancel", form | {"sure": "yes"})
        self.assertEqual(began.status_code, 303)
        [deed] = rota.admin.audit(most=1)
        self.assertEqual((deed.who, deed.action), ("ada", "jobs-cancel"))

    def post(self, page: str, form: dict[str, str]) -> Any:
        return self.client.post(
            f"/ops/rota{page}", urlencode(form), content_type="application/x-www-form-urlencoded",
            headers={"sec-fetch-site": "same-origin"},
        )  # fmt: skip

    def test_acting(self) -> None:
        """A superuser acts, from a page of this host alone."""
        self.login(is_superuser=True)
        url = f"/ops/rota/jobs/{self.job.id}/cancel"
        self.assertEqual(self.client.post(url, {"sure": "yes"}).status_code, 403)
        answer = self.post(f"/jobs/{self.job.id}/cancel", {"sure": "yes"})
        self.assertEqual(answer.status_code, 303)
        self.assertIs(rota.job(self.job.id).status, State.CANCELLED)
