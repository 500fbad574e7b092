"""What is said of queues holds for the jobs of cron entries; and when a declaration is another one."""

from contextlib import closing
from datetime import date, timedelta

import pytest

from rota import Backoff, Limit, Rota, Unique
from rota.cron.entry import CronEntry
from tests.app.due import HOURLY, made
from tests.store.factories import open_session


@pytest.fixture
def plain() -> Rota:
    """An app whose database nobody opens."""
    return Rota("sqlite:///nobody-opens-this.db")


def stored(app: Rota, name: str) -> tuple[int, float | None]:
    """Attempts and timeout that a job of an entry gets."""
    record = app.cron.run(name).record()
    return record.max_attempts, record.timeout


def says(app: Rota, **changes: float | None) -> None:
    """Set something for the queue `mail`, as `rota queues set` does."""
    app.database.run(app.database.store.set_queue("mail", changes))


# What is said of queues --------------------------------------------------------------------------


def test_what_is_set_in_the_database(app: Rota) -> None:
    """It holds where the task says nothing: for `run`, for due times, and for jobs with keys."""

    def nothing() -> None: ...

    says(app, max_attempts=4, timeout=40)
    app.cron.add("plain", HOURLY, app.task(name="plain", queue="mail")(nothing))
    app.cron.add(
        "own", HOURLY, app.task(name="own", queue="mail", max_attempts=7, timeout=70)(nothing)
    )
    app.cron.add(
        "five", HOURLY, app.task(name="five", queue="mail", retry=Backoff(attempts=5))(nothing)
    )
    app.cron.add("keyed", HOURLY, app.task(name="keyed", queue="mail", fair="x")(nothing))
    assert stored(app, "plain") == stored(app, "keyed") == (4, 40)
    assert stored(app, "own") == (7, 70)
    assert stored(app, "five") == (5, 40)
    app.cron(HOURLY, name="due")(app.tasks["plain"])
    [one] = made(app)
    [job] = one.jobs
    assert (app.job(job).record().max_attempts, app.job(job).record().timeout) == (4, 40)


def test_what_the_code_says(app: Rota) -> None:
    """It holds for entries of code and of run time, wherever it stands, and after the database."""

    def nothing() -> None: ...

    plain = app.task(name="plain", queue="mail")(nothing)
    own = app.task(name="own", queue="mail", max_attempts=7, timeout=70)(nothing)
    app.cron(HOURLY)(plain)
    app.cron(HOURLY)(own)
    app.queue("mail", max_attempts=3, timeout=30)
    found = {one.entry: app.job(one.jobs[0]).record() for one in made(app)}
    assert {name: (one.max_attempts, one.timeout) for name, one in found.items()} == {
        "plain": (3, 30),
        "own": (7, 70),
    }
    app.cron.add("e", HOURLY, "plain")
    assert stored(app, "e") == (3, 30)
    app.cron.change("e", args={})
    assert stored(app, "e") == (3, 30)
    with Rota(app.url) as fresh:
        says(app, timeout=40)
        assert stored(fresh, "e") == (3, 40)
        assert stored(fresh, "own") == (7, 70)


def test_entries_from_before_there_were_options(app: Rota) -> None:
    """They make jobs as ever; of what everybody gets nobody is taken to have said it."""
    for entry in (
        CronEntry("plain", HOURLY, "t", queue="mail"),
        CronEntry("own", HOURLY, "t", queue="mail", max_attempts=3, timeout=30.0),
    ):
        assert app.database.run(app.database.store.cron.add(entry))
    assert (stored(app, "plain"), stored(app, "own")) == ((5, None), (3, 30))
    says(app, max_attempts=4, timeout=40)
    with Rota(app.url) as fresh:
        assert (stored(fresh, "plain"), stored(fresh, "own")) == ((4, 40), (3, 30))


# Declarations ------------------------------------------------------------------------------------


def test_declarations_of_plain_tasks(plain: Rota) -> None:
    """They are what they were, letter by letter: an upgrade writes no entry anew."""

    def send(number: int) -> None: ...

    plain.cron("@daily", args=(1,))(plain.task(name="send")(send))
    own = plain.task(name="own", queue="mail", priority=2, max_attempts=3, timeout=9)(send)
    plain.cron("@daily", args=(1,))(own)
    assert [one.declaration for one in plain.cron.declarations()] == [
        (
            '{"name":"send","expression":"@daily","task":"send","timezone":"UTC","missed":"latest",'
            '"jitter":0.0,"args":"{\\"number\\":1}","due":null,"queue":"default","priority":0,'
            '"max_attempts":5,"timeout":null}'
        ),
        (
            '{"name":"own","expression":"@daily","task":"own","timezone":"UTC","missed":"latest",'
            '"jitter":0.0,"args":"{\\"number\\":1}","due":null,"queue":"mail","priority":2,'
            '"max_attempts":3,"timeout":9.0}'
        ),
    ]


def test_other_options_are_another_declaration(app: Rota) -> None:
    """A task that gets a limit, or another one, has its entry written when a worker starts."""

    def send(number: int, day: date | None = None) -> None: ...

    texts = set()
    task = app.task(name="send")(send)
    for number, one in enumerate(
        (
            task,
            task.using(limit=Limit(running=1)),
            task.using(limit=Limit(running=2)),
            task.using(limit=Limit("x", running=2)),
            task.using(unique="{number}"),
            task.using(unique=Unique(key="{number}", period=timedelta(hours=1))),
            task.using(unique=Unique(key="{number}", period=60)),
            task.using(fair="{number}"),
            task.using(max_attempts=5),
        )
    ):
        with Rota(app.url) as other:
            # Each as the code of another release.
            other.cron.declared["e"] = app.cron._entry(
                "e", "@daily", one, timezone="UTC", missed="latest", jitter=0, args=(1,), due=None
            )
            texts |= {declared.declaration for declared in other.cron.declarations()}
            with closing(app.database.store.connect()) as connection:
                session = open_session(app.database.store, connection)
                declare = app.database.store.cron.declare
                assert connection.run(declare(session, other.cron.declarations())) == ["e"]
                assert connection.run(declare(session, other.cron.declarations())) == []
            [record] = app.cron.entries()
            assert record.entry == other.cron.declared["e"]
        assert len(texts) == number + 1
