"""Args that are shown to nobody: declared once, hidden everywhere, stored as they are."""

import json
import logging
from typing import Any

import pytest

from rota import Context, FinishedJob, Rota, Secret, WorkerConfig
from rota.errors import ConfigError
from rota.events import Event
from rota.model.headers import encoded
from rota.model.job import JobFilter
from rota.model.redaction import redacted_args, redacted_names, shown_args
from rota.worker import Worker
from tests.cli.calling import rota as command

TOKEN = "s3cr3t"


def declared(app: Rota) -> tuple[Any, list[object]]:
    """A task with two secrets, and what its handler got."""
    got: list[object] = []

    @app.task(name="pay", redact=("card",), max_attempts=1)
    def pay(order: int, token: Secret[str], card: str, spare: Secret[str] | None = None) -> None:
        got.extend((order, token, card, spare))
        message = "refused"
        raise ValueError(message)

    return pay, got


def test_the_handler_gets_the_value(app: Rota) -> None:
    """A secret is stored, and given to the handler, as any other arg."""
    pay, got = declared(app)
    job = pay.enqueue(7, TOKEN, card="4711")
    assert json.loads(job.record().args) == {"order": 7, "token": TOKEN, "card": "4711"}
    Worker(app, WorkerConfig(drain=True)).run()
    assert got == [7, TOKEN, "4711", None]


def test_in_the_args_of_a_successor(app: Rota) -> None:
    """A successor is given all args, and its own hide them; what its task hides is hidden as well."""
    pay, _ = declared(app)

    @app.task(name="alarm", redact=("pin",))
    def alarm(job: FinishedJob, pin: int = 4711) -> None: ...

    pay.using(on_failure=alarm, headers={"tenant": "acme"}).enqueue(7, TOKEN, card="4711")
    Worker(app, WorkerConfig(drain=True)).run()
    [record] = app.jobs.list(task="alarm")
    assert TOKEN in record.args
    assert json.loads(shown_args(record)) == {"job": "***"}
    assert record.headers["tenant"] == "acme"
    assert redacted_names(encoded(record.headers)) == ("pin", "job")


def test_every_view_hides_it(app: Rota, store_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """The command line, which does not know the task, logs, and events; other args are shown."""
    caplog.set_level(logging.DEBUG)
    pay, _ = declared(app)
    events: list[Event] = []
    app.on(Event)(events.append)
    job = pay.enqueue(7, TOKEN, card="4711", spare=TOKEN)
    Worker(app, WorkerConfig(drain=True)).run()
    told = [caplog.text, repr(events), repr(job.record())]
    for args in (
        ("jobs", "show", job.id),
        ("jobs", "show", job.id, "--json"),
        ("jobs", "list", "--json"),
        ("top", "--once", "--every", "0.1s"),
    ):
        told += [command(*args, url=store_url).stdout]
    for text in told:
        assert TOKEN not in text
        assert "4711" not in text
    shown = json.loads(command("jobs", "show", job.id, "--json", url=store_url).stdout)
    assert shown["jobs"][0]["args"] == {"order": 7, "token": "***", "card": "***", "spare": "***"}
    assert shown["jobs"][0]["headers"] == {}
    assert '"order": 7' in command("jobs", "show", job.id, url=store_url).stdout


def test_cron_entries(app: Rota, store_url: str) -> None:
    """The args of an entry are hidden, and those of its jobs."""
    pay, _ = declared(app)
    app.cron.add("nightly", "@daily", pay, args={"order": 7, "token": TOKEN, "card": "4711"})
    told = command("cron", "list", "--json", url=store_url).stdout
    assert TOKEN not in told
    assert json.loads(told)["entries"][0]["args"]["token"] == "***"
    record = app.cron.run("nightly").record()
    assert json.loads(record.args)["token"] == TOKEN
    assert json.loads(shown_args(record))["token"] == "***"


def test_each_way_to_enqueue(app: Rota) -> None:
    """Many at once, with options, with headers, and elements of a batch."""
    pay, _ = declared(app)

    @app.task(name="batched", batch=5)
    def batched(items: list[Secret[str]]) -> None:
        del items

    pay.enqueue_many([(1, TOKEN, "4711"), (2, TOKEN, "4711")])
    pay.using(headers={"trace": "1"}, expires=60).enqueue(3, TOKEN, card="4711")
    batched.enqueue(TOKEN)
    records = app.database.run(app.database.store.list_jobs(JobFilter()))
    assert len(records) == 4
    assert all(TOKEN in record.args for record in records)
    assert not any(TOKEN in shown_args(record) for record in records)


def test_handlers_do_not_see_the_mark(app: Rota) -> None:
    """The header that says what is hidden is Rota's own."""
    seen: list[object] = []

    @app.task(name="send", redact=("token",))
    def send(context: Context, token: str) -> None:
        del token
        seen.append(dict(context.headers))

    send.using(headers={"trace": "1"}).enqueue(TOKEN)
    Worker(app, WorkerConfig(drain=True)).run()
    assert seen == [{"trace": "1"}]


def test_names_that_are_no_args(app: Rota) -> None:
    """A name is of an arg, and names are in a tuple."""
    for names in (("nothing",), "token", ("token", "other")):
        with pytest.raises(ConfigError, match="redact: must be a tuple of names of its args"):
            app.task(name="send", redact=names)(lambda token: token)


@pytest.mark.parametrize("option", [{"unique": "pay-{token}"}, {"fair": "{token}"}])
def test_no_key_has_a_secret_in_it(app: Rota, option: dict[str, Any]) -> None:
    """Keys are shown, so they are made of other args."""
    with pytest.raises(ConfigError, match="'token' in it, which is redacted"):
        app.task(name="pay", redact=("token",), **option)(lambda token: token)

    task = app.task(name="later", redact=("token",))(lambda token: token)
    with pytest.raises(ConfigError, match="'token' in it, which is redacted"):
        task.using(**option)


@pytest.mark.parametrize("args", ["[1]", "7", '"s3cr3t"', "{", '{"a":' * 3000])
def test_args_that_cannot_be_read(args: str) -> None:
    """What SQL has stored and no task would have is hidden as a whole."""
    assert json.loads(redacted_args(args, ("token",))) == "***"
    assert redacted_args(args, ()) == args
