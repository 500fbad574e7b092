"""`rota audit`."""

import json

from rota.model.audit import Deed
from rota.model.job import JobId
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.cli.calling import rota


def test_nothing_was_done(store_url: str, store: Store) -> None:
    """There are headings alone, and JSON has an empty list."""
    assert store.name in store_url
    assert len(rota("audit", url=store_url).stdout.splitlines()) == 1
    assert json.loads(rota("audit", "--json", url=store_url).stdout) == {"deeds": []}


def test_deeds(store_url: str, store: Store, connection: Connection) -> None:
    """The newest first, page by page."""
    for who in ("ada", "bob", "\x1b[31m"):
        deed = Deed(who, "jobs-retry", {"queue": "mail", "task": "send"}, 12, JobId(7))
        connection.run(store.audit.add(deed))
    shown = rota("audit", "--most", "2", url=store_url)
    first, second = shown.stdout.splitlines()[1:]
    assert "bob" in second
    assert "queue mail, task send" in second
    assert "\x1b" not in first
    assert "more with --most, or --before 2" in shown.stderr
    [deed] = json.loads(rota("audit", "--before", "2", "--json", url=store_url).stdout)["deeds"]
    assert (deed["who"], deed["changed"], deed["job"]) == ("ada", 12, 7)
    assert deed["what"] == {"queue": "mail", "task": "send"}
