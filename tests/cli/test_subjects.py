"""`rota jobs` for unique jobs and subjects."""

import json

from rota import Unique
from rota.model.job import Keys, Order
from rota.model.states import Move
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.cli.calling import rota
from tests.store.factories import claim, open_session, settle, settlement, spec_of


def test_a_subject(store_url: str, store: Store, connection: Connection) -> None:
    """Its rounds, its last run and its next one are shown; a finished one gives way by hand."""
    spec = spec_of(unique=Unique())
    session = open_session(store, connection)
    for key in ("site:a", "site:b"):
        connection.run(store.enqueue(Order(spec, ["{}"], Keys(unique=[key]))))
    first, second = claim(store, connection, session)
    settle(
        store, connection, session,
        settlement(first, Move.AGAIN, delay=3600.0), settlement(second, Move.DISCARD),
    )  # fmt: skip
    listed = rota("jobs", "list", "--subject", "site:a", url=store_url)
    assert listed.exit_code == 0, listed.output
    assert listed.stdout.splitlines()[0].split("\t")[4].strip() == "rounds"
    assert len(listed.stdout.splitlines()) == 2
    many = rota("jobs", "list", "--subject", "site:*", "--json", url=store_url)
    found = {one["unique_key"]: one for one in json.loads(many.stdout)["jobs"]}
    assert found.keys() == {"site:a", "site:b"}
    assert found["site:a"]["iteration"] == 1
    assert found["site:a"]["last_run"]
    assert found["site:a"]["scheduled_at"]
    shown = rota("jobs", "show", first.id, url=store_url).stdout
    assert "key       site:a" in shown
    assert "rounds    1" in shown
    connection.run(store.enqueue(Order(spec, ["{}"], Keys(unique=["site:b"]))))
    retried = rota("jobs", "retry", second.id, url=store_url)
    assert retried.exit_code == 1
    assert "another job has its unique key 'site:b'" in retried.stderr
    # The last one is what Python makes of a byte that is no UTF-8.
    for subject in ("", "a\0", "\udcff"):
        refused = rota("jobs", "list", "--subject", subject, url=store_url)
        assert refused.exit_code == 2
        assert "order:*" in refused.stderr
