"""Secrets in the dashboard: of jobs that say so, and of tasks that this app knows."""

from collections.abc import Callable
from typing import Any

from rota import Rota, Secret
from rota.dashboard.access import Access
from rota.dashboard.core import Core
from rota.dashboard.message import Request

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
