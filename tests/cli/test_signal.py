"""`rota jobs signal`, and the steps that `rota jobs show` shows."""

import json

from rota.model.memory import FOR_EVER, Holder, Kind, Pause
from rota.model.states import Move
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.cli.calling import rota
from tests.store.factories import running, settle, settlement


def test_a_job_that_waits(store_url: str, store: Store, connection: Connection) -> None:
    """What it has done and for what it waits is shown, and the signal wakes it."""
    session, [job] = running(store, connection)
    connection.run(store.memory.remember(Holder(session, job.lease, job.id), "charge", '{"id": 7}'))
    pauses = (Pause(Kind.WAIT, "approved", FOR_EVER, "approved"),)
    snoozed = settlement(job, Move.SNOOZE, delay=FOR_EVER, pauses=pauses)
    settle(store, connection, session, snoozed)
    shown = rota("jobs", "show", job.id, url=store_url).stdout
    assert 'step      charge: done  {"id": 7}' in shown
    assert "wait      approved: waiting\n" in shown
    sent = rota("jobs", "signal", job.id, "approved", '{"by": "Ada"}', "--id", "a", url=store_url)
    assert sent.stdout == f"job {job.id} has the signal approved\n"
    document = json.loads(rota("jobs", "show", job.id, "--json", url=store_url).stdout)
    [charge, wait, signal] = document["jobs"][0]["steps"]
    assert (charge["result"], wait["state"], signal["result"]) == (
        {"id": 7},
        "waiting",
        {"by": "Ada"},
    )
    assert connection.run(store.get([job.id]))[0].state == "available"
    again = rota("jobs", "signal", job.id, "approved", "--json", url=store_url)
    assert json.loads(again.stdout) == {"job": job.id, "signal": "approved"}


def test_signals_that_are_refused(store_url: str, store: Store, connection: Connection) -> None:
    """What is no JSON or no name is a usage error; a job that is over or not there a failure."""
    session, [job] = running(store, connection)
    for words, code, message in (
        ((job.id, "approved", "yes"), 2, "text needs double quotes"),
        ((job.id, ""), 2, "a name of 1 to 200"),
        ((job.id + 1, "approved"), 1, "does not exist"),
    ):
        refused = rota("jobs", "signal", *words, url=store_url)
        assert (refused.exit_code, message in refused.stderr) == (code, True), refused.stderr
    settle(store, connection, session, settlement(job, Move.COMPLETE))
    refused = rota("jobs", "signal", job.id, "approved", url=store_url)
    assert refused.exit_code == 1
    assert "takes no more signals" in refused.stderr
