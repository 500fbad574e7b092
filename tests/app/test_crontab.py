"""Cron entries as users write them: declared in code, and added while the app runs."""

import json
import re
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from rota import (
    ArgsError,
    ConfigError,
    Context,
    CronEntryExists,
    CronEntryNotFound,
    Rota,
    State,
    Task,
    TaskNotFound,
)
from rota.cron.entry import CronEntry, Missed

Send = Task[..., Any, Any]


@pytest.fixture
def plain() -> Rota:
    """An app whose database nobody opens."""
    return Rota("sqlite:///nobody-opens-this.db")


def test_declaring(plain: Rota) -> None:
    """The task comes back unchanged; its options and args are the entry's."""

    def digest(at: datetime, tenant: int, ctx: Context | None = None) -> None:
        del at, tenant, ctx

    task = plain.task(name="digest", queue="mail", priority=2, timeout=9, max_attempts=3)(digest)
    declare = plain.cron(
        "0 9 * * MON-FRI", timezone="Europe/Rome", missed="all", jitter=timedelta(minutes=1),
        args={"tenant": 7}, due="at",
    )  # fmt: skip
    assert declare(task) is task
    assert plain.cron.declared == {
        "digest": CronEntry(
            name="digest", expression="0 9 * * MON-FRI", task="digest", timezone="Europe/Rome",
            missed=Missed.ALL, jitter=60.0, args='{"tenant":7}', due="at", queue="mail", priority=2,
            max_attempts=3, timeout=9.0,
        )
    }  # fmt: skip


def test_several_entries_of_a_task(plain: Rota) -> None:
    """Each but one needs a name; `using` gives the jobs of one of them other options."""

    @plain.cron("@daily", args=(1,))
    @plain.cron("@hourly", name="fast", args=(2,))
    @plain.task(name="send")
    def send(number: int) -> None:
        del number

    plain.cron("@weekly", name="slow", args=[3])(send.using(queue="slow", priority=9))
    found = {name: (one.args, one.queue) for name, one in plain.cron.declared.items()}
    assert found == {
        "send": ('{"number":1}', "default"),
        "fast": ('{"number":2}', "default"),
        "slow": ('{"number":3}', "slow"),
    }
    with pytest.raises(
        CronEntryExists, match="already a cron entry named 'send'; give one of them another name"
    ):
        plain.cron("@weekly", args=(1,))(send)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"expression": "0 0 30 2 *"}, ConfigError, "expression"),
        ({"expression": "* * *"}, ConfigError, "five fields"),
        ({"timezone": "Europe/Roma"}, ConfigError, "did you mean Europe/Rome"),
        ({"missed": "some"}, ConfigError, "skip, latest, all"),
        ({"jitter": -1}, ConfigError, "jitter"),
        ({"jitter": "1m"}, ConfigError, "jitter"),
        ({"name": " "}, ConfigError, "cron: must be a name"),
        ({"args": (1, 2, 3)}, ArgsError, "`at`"),
        ({"args": ("x",)}, ArgsError, "number"),
        ({"args": {"colour": 1}}, ArgsError, "colour"),
        ({"args": ()}, ArgsError, "number"),
        ({"args": 7}, ArgsError, r"\(value,\)"),
        ({"args": "ab"}, ArgsError, r"\(value,\)"),
        ({"due": "when"}, ArgsError, "when"),
        ({"due": "number"}, ArgsError, "number"),
        ({"due": "day", "args": {"number": 1}}, ArgsError, "day"),
        ({"due": "at", "args": {"number": 1, "at": None}}, ArgsError, "leave one of them out"),
    ],
)
def test_bad_entries(
    plain: Rota, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    """What cannot be is refused where it is written, in code and at run time alike."""

    @plain.task(name="send")
    def send(number: int, at: datetime | None = None, day: date | None = None) -> None:
        del number, at, day

    given = {"name": "e", "expression": "@daily", "args": (1,), **options}
    with pytest.raises(error, match=said):
        plain.cron(given.pop("expression"), **given)(send)
    assert plain.cron.declared == {}
    given = {"name": "e", "expression": "@daily", "args": (1,), **options}
    with pytest.raises(error, match=said):
        plain.cron.add(given.pop("name"), given.pop("expression"), send, **given)


def test_what_is_no_task(plain: Rota) -> None:
    """A function, another app's task, a task with a time of its own, a name of none."""

    def function() -> None: ...

    with pytest.raises(ConfigError, match=r"above @rota\.task"):
        plain.cron("@daily")(function)  # type: ignore[type-var]
    theirs = Rota("sqlite:///nobody-opens-this-either.db").task(name="f")(function)
    with pytest.raises(ConfigError, match="must be a task of this app"):
        plain.cron("@daily")(theirs)
    ours = plain.task(name="f")(function)
    with pytest.raises(ConfigError, match="has a delay or a time"):
        plain.cron("@daily")(ours.using(delay=5))
    with pytest.raises(TaskNotFound, match="'none'"):
        plain.cron.add("e", "@daily", "none")
    with pytest.raises(ConfigError, match="must be a task of this app"):
        plain.cron.add("e", "@daily", function)  # type: ignore[arg-type]


def test_at_run_time(app: Rota, send: Send) -> None:
    """Added, changed, paused, resumed, run, removed."""
    app.cron.add("e", "@daily", "send", args=(1,), timezone="Asia/Tokyo", jitter=5)
    with pytest.raises(CronEntryExists, match="already a cron entry named 'e'; change it"):
        app.cron.add("e", "@daily", send, args=(1,))
    app.cron.change("e", expression="@hourly", missed="skip", args={"number": 2})
    [found] = app.cron.entries()
    assert found.entry == CronEntry(
        "e", "@hourly", "send", "Asia/Tokyo", Missed.SKIP, 5.0, '{"number":2}'
    )
    assert [app.cron.pause("e"), app.cron.pause("e")] == [True, False]
    handle = app.cron.run("e")
    record = handle.record()
    assert (record.task, json.loads(record.args), record.state) == (
        "send", {"number": 2}, State.AVAILABLE,
    )  # fmt: skip
    assert [app.cron.resume("e"), app.cron.resume("e")] == [True, False]
    app.cron.remove("e")
    assert app.cron.entries() == []


@pytest.mark.asyncio
async def test_at_run_time_in_async_code(app: Rota, send: Send) -> None:
    """The twins do the same."""
    await app.cron.aadd("e", "@daily", send, args=(1,))
    with pytest.raises(CronEntryExists):
        await app.cron.aadd("e", "@daily", send, args=(1,))
    await app.cron.achange("e", expression="@hourly", args=(2,))
    [found] = await app.cron.aentries()
    assert (found.entry.expression, found.entry.args) == ("@hourly", '{"number":2}')
    assert [await app.cron.apause("e"), await app.cron.apause("e")] == [True, False]
    assert (await (await app.cron.arun("e")).arecord()).task == "send"
    assert [await app.cron.aresume("e"), await app.cron.aresume("e")] == [True, False]
    await app.cron.aremove("e")
    for call in (app.cron.aremove, app.cron.apause, app.cron.aresume, app.cron.arun):
        with pytest.raises(CronEntryNotFound, match="'e'"):
            await call("e")


@pytest.mark.parametrize("name", ["none", "", "a\0", "\ud800"])
def test_unknown_entries(app: Rota, name: str) -> None:
    """Each method says that there is none of that name, and how to see those there are."""
    said = re.escape(f"{name!r}; `rota cron list`")
    for method in ("remove", "pause", "resume", "run"):
        with pytest.raises(CronEntryNotFound, match=said):
            getattr(app.cron, method)(name)
    for changes in ({"jitter": 1}, {"args": (1,)}):
        with pytest.raises(CronEntryNotFound, match=said):
            app.cron.change(name, **changes)


def test_bad_changes(app: Rota, send: Send) -> None:
    """What cannot be is refused, and the entry stays as it was."""
    app.cron.add("e", "@daily", send, args=(1,))
    before = app.cron.entries()
    with pytest.raises(ConfigError, match="nothing to change"):
        app.cron.change("e")
    with pytest.raises(ConfigError, match="expression"):
        app.cron.change("e", expression="0 0 30 2 *")
    with pytest.raises(ConfigError, match="timezone"):
        app.cron.change("e", timezone="Mars/Base")
    with pytest.raises(ArgsError, match="number"):
        app.cron.change("e", args=("x",))
    with Rota(app.url) as other, pytest.raises(TaskNotFound, match="'send'"):
        other.cron.change("e", args=(2,))
    assert app.cron.entries() == before


def test_in_a_transaction(app: Rota, send: Send) -> None:
    """An entry is there if, and only if, the transaction commits."""
    tx = app.database.begin()
    app.cron.add("lost", "@daily", send, args=(1,), conn=tx.connection)
    app.cron.run("lost", conn=tx.connection)
    tx.rollback()
    assert app.cron.entries() == []
    with app.transaction() as own:
        app.cron.add("kept", "@daily", send, args=(1,), conn=own)
        job = app.cron.run("kept", conn=own)
    assert [one.entry.name for one in app.cron.entries()] == ["kept"]
    assert job.status is State.AVAILABLE


@pytest.mark.asyncio
async def test_in_a_transaction_of_async_code(app: Rota, send: Send) -> None:
    """The same for the twins."""
    async with app.transaction() as own:
        await app.cron.aadd("kept", "@daily", send, args=(1,), conn=own)
        await app.cron.apause("kept", conn=own)
    [found] = app.cron.entries()
    assert (found.entry.name, found.paused) == ("kept", True)


def test_an_entry_of_another_database(app: Rota, send: Send) -> None:
    """A connection that leads elsewhere is refused."""
    with pytest.raises(ConfigError, match="conn is of type"):
        app.cron.add("e", "@daily", send, args=(1,), conn=object())
