"""The audit: what people did here."""

from collections.abc import Callable
from typing import Any

import pytest

from rota import Rota
from rota.dashboard.access import Access, granted
from rota.dashboard.core import Core
from rota.dashboard.message import Request
from rota.dashboard.pages.acting import ACTIONS
from rota.errors import ConfigError
from rota.model.audit import Deed
from rota.model.job import JobId

OWN = {"sec-fetch-site": "same-origin"}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_every_action_is_written_down(app: Rota, core: Core, action: Any) -> None:
    """Who, what, on what, and how many it changed; no question is written down, and no failure."""
    send = app.task(name="send")(lambda: None)
    job = send.using(delay=60).enqueue()
    app.cron.add("nightly", "@daily", send)
    if action.name.endswith("-resume"):
        app.queue("default").pause()
        app.cron.pause("nightly")
    kind = action.path.split("/")[1]
    with app.flow("import") as flow:
        flow.add(send)
    if action.name == "flows-retry":
        flow.handle.cancel()
    of = {"jobs": str(job.id), "flows": str(flow.handle.id), "queue": "default", "cron": "nightly"}[
        kind
    ]
    path = action.path.replace("{id}", of)
    ada = Access.all(who="ada")
    if action.question:
        core.answer(Request("POST", path, ada, {}, OWN, {"name": of}))
        assert app.admin.audit() == []
    core.answer(Request("POST", path, ada, {}, OWN, {"name": of, "sure": "yes"}))
    [deed] = app.admin.audit()
    assert (deed.who, deed.action, deed.changed) == ("ada", action.name, 1)
    assert list(deed.what.values()) == [of]
    core.answer(Request("POST", path, ada, {}, OWN, {"name": "nowhere\0", "sure": "yes"}))
    if kind not in {"jobs", "flows"}:
        assert len(app.admin.audit()) == 1


def test_the_page(app: Rota, page: Callable[..., str], data: Callable[..., Any]) -> None:
    """The newest first, page by page, with links to jobs and queues; all that is shown is escaped."""
    add, evil = app.database.store.audit.add, "<b>&"
    for number in range(51):
        deed = Deed(evil if number else "first", "queue-pause", {"queue": evil}, number)
        app.database.run(add(deed))
    first = data("/audit")
    assert [deed["changed"] for deed in first["deeds"]] == [*range(50, 0, -1)]
    rest = data("/audit", before=first["before"])
    assert [deed["who"] for deed in rest["deeds"]] == ["first"]
    assert rest["before"] is None
    assert data("/audit", before="1")["deeds"] == []
    shown = page("/audit")
    assert evil not in shown
    assert "?name=%3Cb%3E%26" in shown
    assert "before=2" in shown


def test_nothing_was_done(page: Callable[..., str], get: Callable[..., Any]) -> None:
    """An empty audit says so; a strange page is refused."""
    assert "Nothing has been done here yet." in page("/audit")
    for before in ("x", "-1", "9" * 40):
        assert get("/audit", before=before).status == 400


def test_args_in_the_audit(app: Rota, get: Callable[..., Any]) -> None:
    """What jobs were found by is shown without args to those who may not see args."""
    what = {"queue": "mail", "subject": "order:ARG", "arg": "order=ARG"}
    app.database.run(app.database.store.audit.add(Deed("ada", "jobs-retry", what, 1, JobId(7))))
    for json in (False, True):
        hidden = get("/audit", access=Access.read(), json=json).body.decode()
        assert "ARG" not in hidden
        assert "mail" in hidden
        assert "***" in hidden
        assert "order=ARG" in get("/audit", access=Access.only("args"), json=json).body.decode()


def test_who(app: Rota) -> None:
    """A name comes with the rights, and goes on with fewer of them; it is one line."""
    assert Access.all(who="ada").looking().who == "ada"
    assert Access.only("retry", who="a\nb\0").who == "ab"
    assert Access.all().who == ""
    assert granted(Access.all(who="x" * 999)).who == "x" * 200
    with pytest.raises(ConfigError, match="most"):
        app.admin.audit(most=0)
