"""Secrets in the dashboard: of jobs that say so, and of tasks that this app knows."""

from collections.abc import Callable
from typing import Any

import msgspec

from rota import Rota, Secret
from rota.dashboard.access import Access
from rota.dashboard.core import Core
from rota.dashboard.message import Request
from tests.dashboard.conftest import Get

TOKEN = "s3cr3t"


def test_secrets_stay_hidden(app: Rota, data: Callable[..., Any], page: Callable[..., str]) -> None:
    """Also from whoever may see args."""

    @app.task(name="pay")
    def pay(order: int, token: Secret[str]) -> None:
        del order, token

    job = pay.enqueue(7, TOKEN)
    app.cron.add("nightly", "@daily", pay, args=(7, TOKEN))
    assert data(f"/jobs/{job.id}")["args"] == {"order": 7, "token": "***"}
    assert data(f"/jobs/{job.id}")["headers"] == {}
    for path in (f"/jobs/{job.id}", "/cron", "/jobs"):
        assert TOKEN not in page(path)
    assert TOKEN in app.job(job.id).record().args


def test_jobs_from_before(app: Rota, store_url: str, data: Callable[..., Any]) -> None:
    """A job that was enqueued before its task had a secret is hidden by an app that knows the task."""
    with Rota(store_url) as older:
        job = older.task(name="pay")(lambda token: token).enqueue(TOKEN)
        stranger = Core(older)
        request = Request(
            "GET", f"/jobs/{job.id}", Access.all(), headers={"accept": "application/json"}
        )
        assert TOKEN in stranger.answer(request).body.decode()
    app.task(name="pay", redact=("token",))(lambda token: token)
    assert data(f"/jobs/{job.id}")["args"] == {"token": "***"}


def test_no_job_is_found_by_a_secret(app: Rota, get: Get, data: Callable[..., Any]) -> None:
    """Neither by an app that knows the task, nor by one that does not: guesses tell nothing."""
    pay = app.task(name="pay", redact=("token",))(lambda order, token: (order, token))
    job = pay.enqueue(7, TOKEN)
    response = get("/jobs", arg=f"token={TOKEN}")
    assert response.status == 403
    with Rota(app.url) as stranger:
        headers = {"accept": "application/json"}
        for arg, found in ((f"token={TOKEN}", 0), ("order=7", 1)):
            for state in ("", "available"):
                request = Request(
                    "GET", "/jobs", Access.all(), {"arg": arg, "state": state}, headers
                )
                answer = msgspec.json.decode(Core(stranger).answer(request).body)
                assert [each["id"] for each in answer["jobs"]] == [str(job.id)] * found
    assert len(data("/jobs", arg="order=7")["jobs"]) == 1
