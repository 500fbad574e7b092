"""`rota.admin`, and what a queue's handle can do: in Python what the commands do."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rota import ConfigError, QueueSettings, Rota, State
from rota.app import queue_handle
from rota.store import migrate
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.fixtures.workers import until, working
from tests.store.factories import in_state, one_of_each, states


def test_migrating(tmp_path: Path) -> None:
    """Looking creates nothing; migrating makes the tables, once."""
    file = tmp_path / "new.db"
    with Rota(f"sqlite:///{file}") as app:
        assert app.admin.version() == 0
        [(newest, sql)] = app.admin.pending().items()
        assert "CREATE TABLE rota_job" in sql
        assert not file.exists()
        assert app.admin.migrate() == [newest]
        assert (app.admin.version(), app.admin.pending(), app.admin.migrate()) == (newest, {}, [])


@pytest.mark.asyncio
async def test_migrating_step_by_step(tmp_path: Path) -> None:
    """`to=` stops at a version, from which the next call goes on; a version without a way is refused."""
    with Rota(f"sqlite:///{tmp_path}/old.db") as app:
        store = app.database.store
        newest = max(store.migrations())
        with pytest.raises(ConfigError, match=rf"from version 0.* to: {newest}"):
            await app.admin.amigrate(to=newest - 1)
        steps = migrate.read_migrations("rota.store.sqlite")
        with store.lent() as connection:
            for version in range(1, newest - 1):
                assert connection.run(store.migrate(version, steps[version], after=version - 1))
        assert list(await app.admin.apending()) == [newest - 1, newest]
        assert await app.admin.amigrate(to=newest - 1) == [newest - 1]
        assert await app.admin.aversion() == newest - 1
        assert app.admin.migrate(to=newest - 1) == []
        for wrong in (newest + 1, newest - 2, 0):
            with pytest.raises(ConfigError, match=f"to: {newest}"):
                app.admin.migrate(to=wrong)
        assert app.admin.migrate() == [newest]


def test_queues(app: Rota, send: Any) -> None:
    """Their counts, by name."""
    send.enqueue_many([(1,), (2,)])
    app.queue("mail").pause()
    default, mail = app.admin.queues()
    assert (default.name, dict(default.counts), default.paused) == (
        "default", {State.AVAILABLE: 2}, False,
    )  # fmt: skip
    assert (mail.name, dict(mail.counts), mail.paused) == ("mail", {}, True)


@pytest.mark.asyncio
async def test_workers(app: Rota) -> None:
    """What runs where, while it runs."""
    began: list[int] = []

    @app.task(name="slow")
    async def slow() -> None:
        found = await app.admin.aworkers()
        began.extend(job.id for worker in found for job in worker.jobs)

    handle = slow.enqueue()
    with working(app, queues=("default", "mail-*")) as worker:
        until(lambda: began)
        handle.wait(20)
        [found] = app.admin.workers(jobs=1)
    assert began == [handle.id]
    assert found.alive
    assert set(found.queues) == {"default", "mail-*"}
    assert app.admin.workers() == []
    assert worker is not None
    with pytest.raises(ConfigError, match="jobs: must be a whole number"):
        app.admin.workers(jobs=0)


def test_clearing_a_queue(
    app: Rota, store: Store, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waiting jobs go, batch by batch; jobs in other states if asked for; running jobs never."""
    monkeypatch.setattr(queue_handle, "BATCH", 2)
    jobs = one_of_each(store, connection)
    late = [in_state(store, connection, State.SCHEDULED).id for _ in range(4)]
    queue = app.queue("default")
    told: list[tuple[State, int]] = []
    gone = queue.clear(until=late[2], told=lambda state, deleted: told.append((state, deleted)))
    assert gone == {State.SCHEDULED: 4, State.AVAILABLE: 1, State.RETRYABLE: 1}
    assert told[:3] == [(State.SCHEDULED, 2), (State.SCHEDULED, 4), (State.SCHEDULED, 4)]
    assert states(store, connection, late[3:]) == [State.SCHEDULED]
    assert queue.clear(["completed", State.CANCELLED]) == {State.COMPLETED: 1, State.CANCELLED: 1}
    assert states(store, connection, [jobs[State.RUNNING], jobs[State.DISCARDED]]) == [
        State.RUNNING, State.DISCARDED,
    ]  # fmt: skip


@pytest.mark.asyncio
async def test_setting_up_a_queue(app: Rota) -> None:
    """What is set stays until it is changed or taken away; a handle alone declares nothing."""
    queue = app.queue("mail")
    assert queue.settings() == QueueSettings()
    assert queue.set(max_attempts=3, timeout=timedelta(seconds=30)) == QueueSettings(
        max_attempts=3, timeout=30.0
    )
    wanted = QueueSettings(max_attempts=4, timeout=30.0, concurrency=2, discarded=60.0)
    assert await queue.aset(max_attempts=4, concurrency=2, retention={"discarded": 60}) == wanted
    assert await queue.asettings() == wanted
    assert queue.unset("timeout", "discarded") == QueueSettings(max_attempts=4, concurrency=2)
    assert await queue.aunset() == QueueSettings()
    assert app.queues.declared == {}


@pytest.mark.parametrize(
    ("name", "args", "options", "said"),
    [
        ("set", (), {}, "set: say what"),
        ("set", (), {"concurrency": 0}, "concurrency: must be a whole number"),
        ("set", (), {"timeout": 0}, "timeout: must be more than 0"),
        ("set", (), {"retention": {"running": 1}}, "retention: only"),
        ("unset", ("colour",), {}, "no setting 'colour'; the settings are completed"),
    ],
)
def test_what_cannot_be_set(app: Rota, name: str, args: Any, options: Any, said: str) -> None:
    """It is refused, and nothing is written."""
    with pytest.raises(ConfigError) as refused:
        getattr(app.queue("mail"), name)(*args, **options)
    assert said in str(refused.value)
    assert app.admin.queues() == []


@pytest.mark.asyncio
async def test_clearing_in_async_code(app: Rota, send: Any) -> None:
    """The same; and what cannot be cleared is refused."""
    await send.aenqueue(1)
    assert (await app.queue("default").aclear(["available"])) == {State.AVAILABLE: 1}
    for wrong in (["running"], "running", ["x"]):
        with pytest.raises(ConfigError, match="cannot be cleared"):
            await app.queue("default").aclear(wrong)
