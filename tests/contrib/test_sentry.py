"""`rota.sentry`: spans, exceptions and check-ins, as its transport gets them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from rota import Again, ConfigError, Context, Discard, Retry, Rota, Snooze
from rota.model.job import JobSpec
from rota.model.states import Move
from rota.sentry import _around_run, checked, instrument, slug
from tests.contrib import traced
from tests.fixtures.workers import drained, records, until, working
from tests.worker.chores import adopt


class Kept(Transport):
    """Keeps what would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[tuple[str, dict[str, Any]]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        for item in envelope.items:
            if item.payload.json is not None:
                self.items.append((str(item.type), item.payload.json))

    def of(self, kind: str) -> list[dict[str, Any]]:
        """What was sent of a kind: `transaction`, `event`, `check_in`."""
        return [payload for name, payload in self.items if name == kind]


@pytest.fixture
def sent() -> Iterator[Kept]:
    """What would be sent, while the test lasts."""
    kept = Kept()
    before = sentry_sdk.get_client()
    client = sentry_sdk.Client(
        dsn="https://key@example.invalid/1", transport=kept, traces_sample_rate=1.0,
        default_integrations=False, auto_enabling_integrations=False,
    )  # fmt: skip
    sentry_sdk.get_global_scope().set_client(client)
    yield kept
    sentry_sdk.get_global_scope().set_client(before)
    client.close(timeout=0)


@pytest.fixture
def app(sent: Kept, tmp_path: Path) -> Iterator[Rota]:
    """An app that is instrumented; nothing here differs between the stores."""
    del sent
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app:
        instrument(app)
        yield app


def span(transaction: dict[str, Any], op: str) -> dict[str, Any]:
    """The only span of a transaction with this operation."""
    [found] = [each for each in transaction["spans"] if each["op"] == op]
    return dict(found)


def test_from_an_enqueue_to_its_run(app: Rota, sent: Kept) -> None:
    """Both are in one trace, with the data of queues, and no args."""

    @app.task(name="send", queue="mail")
    async def send(order: str) -> None: ...

    with sentry_sdk.start_transaction(name="request", op="http.server"):
        job = send.enqueue("s3cr3t")
    drained(app)
    request, run = sent.of("transaction")
    published, processed = span(request, "queue.publish"), span(run, "queue.process")
    assert published["description"] == processed["description"] == "send"
    assert published["data"] | {"messaging.destination.name": "mail"} == published["data"]
    assert published["data"]["messaging.message.id"] == str(job.id)
    assert published["data"]["messaging.message.body.size"] == len('{"order":"s3cr3t"}')
    data = processed["data"]
    assert data["messaging.message.id"] == str(job.id)
    assert data["messaging.destination.name"] == "mail"
    assert data["messaging.message.body.size"] == len('{"order":"s3cr3t"}')
    assert data["messaging.message.receive.latency"] > 0
    assert data["messaging.message.retry.count"] == 0
    assert run["transaction"] == "send"
    assert run["contexts"]["trace"]["trace_id"] == request["contexts"]["trace"]["trace_id"]
    assert run["contexts"]["trace"]["parent_span_id"] == published["span_id"]
    assert run["contexts"]["trace"]["status"] == "ok"
    assert "s3cr3t" not in str(sent.items)


@pytest.mark.asyncio
async def test_many_at_once(app: Rota, sent: Kept) -> None:
    """One call is one span with their number, async as well; headers of the caller stay."""

    @app.task(name="send")
    async def send(order: int) -> None: ...

    headers = {"baggage": "tenant=acme"}
    with sentry_sdk.start_transaction(name="request", op="http.server"):
        await send.using(headers=headers).aenqueue_many([(1,), (2,)])
    [request] = sent.of("transaction")
    assert span(request, "queue.publish")["data"]["messaging.batch.message_count"] == 2
    for job in records(app):
        assert "sentry-trace" in job.headers
        assert job.headers["baggage"].startswith("tenant=acme,sentry-")


@pytest.mark.parametrize(
    ("said", "status", "reported"),
    [
        (Snooze(3600), "ok", False), (Again(after=3600), "ok", False),
        (Retry("later", after=3600), "internal_error", False),
        (Discard("never"), "internal_error", False),
        (ValueError("no"), "internal_error", True),
    ],
    ids=str,
)  # fmt: skip
def test_outcomes(app: Rota, sent: Kept, said: Exception, status: str, *, reported: bool) -> None:
    """Exceptions are reported with the job; what a handler says on purpose is not."""

    @app.task(name="say", queue="mail", retry=lambda *_: 3600.0)
    def say() -> None:
        raise said

    job = say.enqueue()
    with working(app):
        until(lambda: sent.of("transaction"), "the run")
    [run] = sent.of("transaction")
    assert run["contexts"]["trace"]["status"] == status
    events = sent.of("event")
    assert len(events) == reported
    if events:
        [event] = events
        [told] = event["exception"]["values"]
        assert (told["type"], told["value"]) == ("ValueError", "no")
        assert told["mechanism"] == {"type": "rota", "handled": False}
        assert event["tags"] == {"rota.task": "say", "rota.queue": "mail"}
        assert event["contexts"]["rota"] == {"job": job.id, "attempt": 1, "type": "rota"} or (
            event["contexts"]["rota"]["job"] == job.id
        )


def test_the_scope_of_a_run_is_its_own(app: Rota, sent: Kept) -> None:
    """Tags that one handler sets are not on what another one sends."""

    @app.task(name="tag", max_attempts=1)
    async def tag(order: int) -> None:
        sentry_sdk.set_tag(f"order-{order}", "yes")
        raise ValueError

    tag.enqueue_many([(1,), (2,)])
    drained(app)
    tags = [{name for name in event["tags"] if "order" in name} for event in sent.of("event")]
    assert sorted(tags, key=str) == [{"order-1"}, {"order-2"}]


@pytest.mark.asyncio
async def test_nothing_of_a_run_is_left(sent: Kept) -> None:
    """What is sent after a run, in the same place, has nothing that its handler has set."""

    async def tag() -> None:
        sentry_sdk.set_tag("order", "yes")

    await _around_run(Context.alone(JobSpec("tag")), tag)
    sentry_sdk.capture_message("after")
    [event] = sent.of("event")
    assert "order" not in event.get("tags", {})


def test_child_processes(app: Rota, sent: Kept) -> None:
    """A handler there is in the trace of its run, and its exception is reported here by its own name."""
    job = adopt(app, traced.sentry_of_child).enqueue()
    adopt(app, traced.fail_in_child, max_attempts=1).enqueue()
    drained(app, processes=1)
    [run] = [
        each
        for each in sent.of("transaction")
        if each["transaction"] == traced.sentry_of_child.name
    ]
    assert job.result(0).partition("-")[0] == run["contexts"]["trace"]["trace_id"]
    [event] = sent.of("event")
    told = event["exception"]["values"][-1]
    assert (told["module"], told["type"]) == ("builtins", "ValueError")
    assert told["value"] == "the ship has sunk"
    assert "fail_in_child" in event["extra"]["traceback"]


def test_a_batch(app: Rota, sent: Kept) -> None:
    """One call is one transaction, with the number of jobs."""

    @app.task(name="store", batch=10, within=0.05)
    async def store(numbers: list[int]) -> None: ...

    store.enqueue_many((n,) for n in range(3))
    drained(app)
    [run] = sent.of("transaction")
    assert span(run, "queue.process")["data"]["messaging.batch.message_count"] == 3


@pytest.mark.parametrize(
    ("move", "status"),
    [
        (Move.COMPLETE, "ok"), (Move.AGAIN, "ok"), (Move.DISCARD, "error"),
        (Move.CANCEL, "error"), (Move.RETRY, None), (Move.SNOOZE, None), (Move.RELEASE, None),
    ],
)  # fmt: skip
def test_the_status_of_a_check_in(move: Move, status: str | None) -> None:
    """What goes on later is still in progress."""
    assert checked(move) == status


def test_check_ins(app: Rota, sent: Kept) -> None:
    """A job of an entry checks in once: in progress over all attempts, then ok; other jobs do not."""

    @app.cron("30 */5 4 * * *", name="Shop: digest", timezone="Europe/Rome", jitter=90)
    @app.task(name="digest", max_attempts=2, retry=lambda *_: 0.0)
    async def digest() -> Any:
        tried.append(1)
        return None if len(tried) > 1 else Retry("once more")

    tried: list[int] = []
    app.ready()
    app.cron.add("by-hand", "@daily", digest)
    with working(app):
        app.cron.run("Shop: digest")
        until(lambda: len(sent.of("check_in")) == 3, "the check-ins")
        app.cron.run("by-hand")
        until(lambda: len(sent.of("check_in")) == 5, "the check-ins")
        digest.enqueue()
        until(lambda: len(sent.of("transaction")) == 4, "the runs")
    told = sent.of("check_in")
    assert [each["status"] for each in told] == [
        "in_progress", "in_progress", "ok", "in_progress", "ok",
    ]  # fmt: skip
    assert [each["monitor_slug"] for each in told] == ["shop-digest"] * 3 + ["by-hand"] * 2
    assert len({each["check_in_id"] for each in told}) == 2
    assert told[0]["monitor_config"] == {
        "schedule": {"type": "crontab", "value": "*/5 4 * * *"},
        "timezone": "Europe/Rome",
        "checkin_margin": 3,
    }
    # Who added it by hand has said nothing in code.
    assert "monitor_config" not in told[-1]


def test_a_check_in_of_a_discarded_job(sent: Kept, tmp_path: Path) -> None:
    """It ends with an error, and has what was said of all monitors."""
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app:
        instrument(app, margin=10, max_runtime=120)

        @app.cron("@daily")
        @app.task(name="digest", max_attempts=1)
        async def digest() -> None:
            raise ValueError

        app.ready()
        with working(app):
            app.cron.run("digest")
            until(lambda: len(sent.of("check_in")) == 2, "the check-ins")
    last = sent.of("check_in")[-1]
    assert last["status"] == "error"
    assert last["monitor_config"] == {
        "schedule": {"type": "crontab", "value": "0 0 * * *"},
        "timezone": "UTC",
        "checkin_margin": 10,
        "max_runtime": 120,
    }


def test_names_of_monitors() -> None:
    """Sentry takes small letters, digits, dashes and underscores, fifty of them."""
    assert slug("Shop.Digest: täglich") == "shop-digest-t-glich"
    assert len(slug("x" * 80)) == 50


def test_twice(app: Rota) -> None:
    """An app is instrumented once."""
    with pytest.raises(ConfigError, match="already"):
        instrument(app)
