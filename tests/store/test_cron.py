"""Cron entries in the store: which worker makes their jobs, and that each due time has one."""

import json
import threading
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.cron.entry import CronEntry, CronRecord, Missed
from rota.model.job import JobFilter, JobRecord
from rota.model.states import State
from rota.store.connections import Connection
from rota.store.cron import Made
from rota.store.protocol import Store
from tests.store.factories import close_to, open_session, run_inside, until

HOUR, MINUTES = timedelta(hours=1), timedelta(minutes=1)
MINUTE = (datetime.now(UTC).minute + 30) % 60
HOURLY = f"{MINUTE} * * * *"
"""Due at a minute that is far from now: nothing comes due while a test looks."""


def entry_of(name: str = "hourly", expression: str = HOURLY, **options: Any) -> CronEntry:
    """An entry; tests name what matters to them."""
    return CronEntry(**{"name": name, "expression": expression, "task": "shop.send", **options})


def ago(hours: float) -> datetime:
    return datetime.now(UTC) - timedelta(hours=hours)


def add(store: Store, connection: Connection, entry: CronEntry, hours: float = 0) -> None:
    """Add an entry that no worker has looked at for so many hours."""
    assert connection.run(store.cron.add(entry, ago(hours) if hours else None))


def make(
    store: Store, connection: Connection, aside: list[int] | None = None, **sizes: int
) -> list[Made]:
    done = connection.run(store.cron.make(aside=aside or (), **sizes))
    if aside is not None:
        aside[:] = done.aside
    return done.made


def jobs(store: Store, connection: Connection) -> list[JobRecord]:
    """All jobs, the oldest first."""
    return connection.run(store.list_jobs(JobFilter(limit=10_000)))[::-1]


def records(store: Store, connection: Connection) -> dict[str, CronRecord]:
    return {listed.entry.name: listed for listed in connection.run(store.cron.entries())}


def due_times(hours: int) -> list[datetime]:
    """The last due times, the oldest first."""
    last = (datetime.now(UTC) - MINUTE * MINUTES).replace(minute=MINUTE, second=0, microsecond=0)
    return [last - number * HOUR for number in range(hours)][::-1]


# People's ----------------------------------------------------------------------------------------


def test_what_is_stored_comes_back(store: Store, connection: Connection) -> None:
    """Every field, and when it is due next."""
    entry = entry_of(
        timezone="Asia/Tokyo", missed=Missed.ALL, jitter=1.5, args='{"n":1.50}', due="at",
        queue="mail", priority=-3, max_attempts=7, timeout=2.5,
    )  # fmt: skip
    add(store, connection, entry)
    found = records(store, connection)["hourly"]
    assert found.entry == entry
    assert (found.paused, found.declared, found.undeclared, found.last) == (
        False,
        False,
        False,
        None,
    )
    assert found.due is not None
    assert found.due.utcoffset() == 9 * HOUR
    assert found.due == due_times(1)[0] + HOUR


def test_a_name_is_taken_once(store: Store, connection: Connection) -> None:
    """A second entry of that name changes nothing."""
    add(store, connection, entry_of())
    assert not connection.run(store.cron.add(entry_of(expression="@daily")))
    assert records(store, connection)["hourly"].entry.expression == HOURLY


def test_changing(store: Store, connection: Connection) -> None:
    """Fields change; other times count from now on, and what was due before is not made up."""
    add(store, connection, entry_of(missed=Missed.ALL), hours=5)
    assert connection.run(store.cron.change("hourly", {"jitter": 3.0}))
    changed = records(store, connection)["hourly"]
    assert changed.entry == entry_of(missed=Missed.ALL, jitter=3.0)
    assert changed.due is not None
    assert changed.due < ago(3)
    assert connection.run(store.cron.change("hourly", {"expression": f"1 {HOURLY}"}))
    changed = records(store, connection)["hourly"]
    assert changed.due == due_times(1)[0] + HOUR + timedelta(seconds=1)
    assert make(store, connection) == []


def test_unknown_names(store: Store, connection: Connection) -> None:
    """What is done to an entry that is not there is answered so, and changes nothing."""
    assert not connection.run(store.cron.change("none", {"jitter": 1.0}))
    assert not connection.run(store.cron.remove("none"))
    assert connection.run(store.cron.pause("none")) is None
    assert connection.run(store.cron.resume("none")) is None
    assert connection.run(store.cron.run("none")) is None
    assert connection.run(store.cron.entries()) == []
    assert make(store, connection) == []


def test_removing(store: Store, connection: Connection) -> None:
    """A removed entry makes no jobs, and its name is free."""
    add(store, connection, entry_of(), hours=2)
    assert connection.run(store.cron.remove("hourly"))
    assert make(store, connection) == []
    assert connection.run(store.look(["default"], cron=True)).cron is None
    add(store, connection, entry_of(expression="@daily"))


def test_pausing(store: Store, connection: Connection) -> None:
    """A paused entry makes no jobs; what came meanwhile is not made up."""
    add(store, connection, entry_of(missed=Missed.ALL), hours=3)
    assert connection.run(store.cron.pause("hourly")) is True
    assert connection.run(store.cron.pause("hourly")) is False
    assert records(store, connection)["hourly"].paused
    assert connection.run(store.look(["default"], cron=True)).cron is None
    assert make(store, connection) == []
    assert connection.run(store.cron.resume("hourly")) is True
    assert connection.run(store.cron.resume("hourly")) is False
    due = records(store, connection)["hourly"].due
    assert due is not None
    assert due > ago(0)
    assert make(store, connection) == []


def test_running_now(store: Store, connection: Connection) -> None:
    """A job at once, though the entry is paused and jittered; its times stay as they are."""
    entry = entry_of(due="at", jitter=600.0, timezone="Asia/Tokyo", args='{"n":1}', queue="mail")
    add(store, connection, entry)
    connection.run(store.cron.pause("hourly"))
    before = records(store, connection)["hourly"]
    ran = connection.run(store.cron.run("hourly"))
    assert ran is not None
    [made] = jobs(store, connection)
    assert (made.id, made.task, made.queue, made.state) == (
        ran.stored[0], "shop.send", "mail", State.AVAILABLE,
    )  # fmt: skip
    args = json.loads(made.args)
    at = datetime.fromisoformat(args["at"])
    assert (args["n"], at.utcoffset()) == (1, 9 * HOUR)
    assert close_to(at, ago(0))
    assert records(store, connection)["hourly"] == before


# Making jobs -------------------------------------------------------------------------------------


def test_a_job_for_each_due_time(store: Store, connection: Connection) -> None:
    """Its options and its args are the entry's, its due time is told, and the entry moves on."""
    entry = entry_of(missed=Missed.ALL, due="at", args='{"n":1}', priority=4, timeout=9.0)
    expected = due_times(3)
    add(store, connection, entry, hours=3)
    [made] = make(store, connection)
    assert (made.entry, list(made.due), made.missed) == ("hourly", expected, None)
    found = jobs(store, connection)
    assert [job.id for job in found] == list(made.jobs)
    assert [datetime.fromisoformat(json.loads(job.args)["at"]) for job in found] == expected
    assert {(job.priority, job.timeout, job.state) for job in found} == {(4, 9.0, State.AVAILABLE)}
    after = records(store, connection)["hourly"]
    assert (after.last, after.due) == (expected[-1], expected[-1] + HOUR)
    assert make(store, connection) == []


@pytest.mark.parametrize(("missed", "count"), [("skip", 0), ("latest", 1), ("all", 30)])
def test_missed_runs(store: Store, connection: Connection, missed: str, count: int) -> None:
    """None, one or all of them; the first that came to nothing is told."""
    entry = entry_of(missed=Missed(missed))
    add(store, connection, entry, hours=30)
    [made] = make(store, connection)
    assert len(made.jobs) == len(made.due) == len(jobs(store, connection)) == count
    assert (made.missed is None) == (missed == "all")
    assert make(store, connection) == []
    if missed == "latest":
        assert made.due[0] > ago(1)


def test_many_missed_runs_are_made_in_steps(store: Store, connection: Connection) -> None:
    """Each step is a transaction of bounded size."""
    add(store, connection, entry_of(missed=Missed.ALL), hours=10)
    add(store, connection, entry_of("other", missed=Missed.ALL), hours=10)
    counts = []
    while made := make(store, connection, size=1, jobs=4):
        counts += [len(result.jobs) for result in made]
    assert sorted(counts) == [2, 2, 4, 4, 4, 4]
    assert len(jobs(store, connection)) == 20


def test_jitter_puts_a_job_off(store: Store, connection: Connection) -> None:
    """The job waits for its time; the due time is dealt with."""
    add(store, connection, entry_of(expression="* * * * * *", jitter=1e6), hours=0.01)
    [made] = make(store, connection)
    assert made.jobs
    assert {job.state for job in jobs(store, connection)} == {State.SCHEDULED}


def test_nothing_is_due(store: Store, connection: Connection) -> None:
    """A look says when, and no job is made before."""
    assert connection.run(store.look(["default"], cron=True)).cron is None
    add(store, connection, entry_of(expression="0 0 29 2 *"))
    soon = connection.run(store.look(["default"], cron=True)).cron
    assert soon is not None
    assert soon > 0
    assert make(store, connection) == []
    add(store, connection, entry_of("due"), hours=2)
    look = connection.run(store.look(["default"], cron=True))
    assert look.cron == 0
    assert look.cron_later == pytest.approx(soon, abs=60)
    assert connection.run(store.look(["default"])).cron_later is None


def test_an_entry_that_cannot_be_read_here(store: Store, connection: Connection) -> None:
    """An entry with a newer Rota's expression, or a zone not known here, is left alone."""
    add(store, connection, entry_of("good", missed=Missed.ALL), hours=2)
    add(store, connection, entry_of("bad"), hours=2)
    break_entry(store, connection, "bad")
    made = {result.entry: result for result in make(store, connection)}
    assert len(made["good"].jobs) == 2
    assert "Mars" in (made["bad"].error or "")
    assert made["bad"].jobs == ()
    listed = records(store, connection)["bad"]
    assert listed.entry.timezone == "Mars/Base"
    assert listed.due is not None
    [again] = make(store, connection)
    assert again.entry == "bad"


def test_what_cannot_be_read_here_keeps_no_entry_out(store: Store, connection: Connection) -> None:
    """Such entries are put aside and come last, the longest waiting first, until they can be read."""
    for name in ("bad", "worse", "good", "better"):
        add(store, connection, entry_of(name), hours=2)
    break_entry(store, connection, "bad")
    break_entry(store, connection, "worse")
    aside: list[int] = []
    tried = [result.entry for _ in range(6) for result in make(store, connection, aside, size=1)]
    assert tried == ["bad", "worse", "good", "better", "bad", "worse"]
    assert len(aside) == 2
    break_entry(store, connection, "bad", "UTC")
    assert [bool(result.jobs) for result in make(store, connection, aside)] == [True, False]
    assert len(aside) == 1


def break_entry(
    store: Store, connection: Connection, name: str, timezone: str = "Mars/Base"
) -> None:
    """Give an entry a time zone, behind the back of Rota: one that exists on other machines only."""
    transaction = store.transaction()
    table = "rota.cron_entry" if store.name == "postgres" else "rota_cron_entry"
    driver: Any = transaction.connection
    driver.execute(f"UPDATE {table} SET timezone = '{timezone}' WHERE name = '{name}'")
    transaction.commit()
    assert records(store, connection)[name].entry.timezone == timezone


# The first worker to come -------------------------------------------------------------------------


def test_several_at_once(store: Store, connection: Connection) -> None:
    """However many make jobs at the same time, each due time has one."""
    for number in range(10):
        add(store, connection, entry_of(f"e{number}", missed=Missed.ALL, due="at"), hours=20)
    start = threading.Barrier(4)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with closing(store.connect()) as own:
                start.wait()
                while (
                    make(store, own, size=3, jobs=3) or own.run(store.look([], cron=True)).cron == 0
                ):
                    pass
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    made = [job.args for job in jobs(store, connection)]
    assert len(made) == 200
    assert {made.count(args) for args in made} == {10}


def test_who_dies_before_the_commit(
    store: Store, connection: Connection, other: Connection
) -> None:
    """Jobs and mark are rolled back together, and another worker makes the jobs."""
    add(store, connection, entry_of(missed=Missed.ALL), hours=2)
    transaction = store.transaction()
    [lost] = run_inside(store, transaction, store.cron.make()).made
    assert len(lost.jobs) == 2
    if store.name == "postgres":
        # The entry is locked: others do not wait for it, and make nothing of it.
        assert make(store, other) == []
    transaction.rollback()
    assert jobs(store, connection) == []
    [made] = make(store, other)
    assert made.due == lost.due
    assert len(jobs(store, connection)) == 2


@pytest.mark.parametrize("verb", ["commit", "rollback"])
def test_in_the_transaction_of_a_caller(store: Store, connection: Connection, verb: str) -> None:
    """What is done there is done if it commits, and else not."""
    add(store, connection, entry_of("removed"))
    add(store, connection, entry_of("changed"))
    add(store, connection, entry_of("paused"))
    before = records(store, connection)
    transaction = store.transaction()

    def inside(operation: Any) -> Any:
        return run_inside(store, transaction, operation)

    assert inside(store.cron.add(entry_of("added")))
    assert inside(store.cron.change("changed", {"expression": "@daily"}))
    assert inside(store.cron.remove("removed"))
    assert inside(store.cron.pause("paused"))
    assert inside(store.cron.run("changed"))
    getattr(transaction, verb)()
    after = records(store, connection)
    if verb == "rollback":
        assert (after, jobs(store, connection)) == (before, [])
    else:
        assert sorted(after) == ["added", "changed", "paused"]
        assert after["changed"].entry.expression == "@daily"
        assert after["paused"].paused
        assert len(jobs(store, connection)) == 1


def test_a_change_waits_for_who_makes_jobs(store: Store, connection: Connection) -> None:
    """The change counts from the mark that the other one has left, and nothing is made twice."""
    add(store, connection, entry_of(missed=Missed.ALL), hours=2)
    transaction = store.transaction()
    [made] = run_inside(store, transaction, store.cron.make()).made
    done = threading.Event()

    def change() -> None:
        with closing(store.connect()) as own:
            own.run(store.cron.change("hourly", {"expression": "*/30 * * * *"}))
        done.set()

    thread = threading.Thread(target=change)
    thread.start()
    assert not done.wait(0.2)
    transaction.commit()
    thread.join()
    after = records(store, connection)["hourly"]
    assert after.last == made.due[-1]
    assert make(store, connection) == []
    assert len(jobs(store, connection)) == 2


# Declared in code --------------------------------------------------------------------------------


def declare(store: Store, connection: Connection, *entries: CronEntry) -> tuple[int, list[str]]:
    """A worker with these entries in its code: its session, and what it wrote."""
    session = open_session(store, connection)
    return session, connection.run(store.cron.declare(session, entries))


def test_declaring(store: Store, connection: Connection) -> None:
    """What is new or different is written; an unchanged declaration changes nothing."""
    one, two = entry_of("one"), entry_of("two")
    assert declare(store, connection, two, one)[1] == ["one", "two"]
    assert declare(store, connection, one, two)[1] == []
    found = records(store, connection)
    assert [(r.entry, r.declared, r.undeclared) for r in found.values()] == [
        (one, True, False), (two, True, False),
    ]  # fmt: skip
    other = replace(two, expression="0 0 29 2 *")
    assert declare(store, connection, one, other)[1] == ["two"]
    found = records(store, connection)
    assert found["two"].entry == other
    assert found["two"].due is not None
    assert found["two"].due.month == 2


def test_changes_by_hand_hold(store: Store, connection: Connection) -> None:
    """Until the code says something else; a paused entry stays paused even then."""
    entry = entry_of()
    declare(store, connection, entry)
    connection.run(store.cron.change("hourly", {"expression": "@weekly"}))
    connection.run(store.cron.pause("hourly"))
    assert declare(store, connection, entry)[1] == []
    found = records(store, connection)["hourly"]
    assert (found.entry.expression, found.paused) == ("@weekly", True)
    assert declare(store, connection, replace(entry, jitter=1.0))[1] == ["hourly"]
    found = records(store, connection)["hourly"]
    assert (found.entry, found.paused) == (replace(entry, jitter=1.0), True)


def test_a_new_session_writes_no_entries(store: Store, connection: Connection) -> None:
    """A worker that has lost its session does not bring back what its old code says."""
    old, new = entry_of(), entry_of(jitter=1.0)
    declare(store, connection, old)
    declare(store, connection, new)
    session = open_session(store, connection)
    both = [old, entry_of("removed")]
    assert connection.run(store.cron.declare(session, both, again=True)) == []
    found = records(store, connection)
    assert [listed.entry for listed in found.values()] == [new]
    assert not found["hourly"].undeclared


def test_what_is_missed_stays_missed(store: Store, connection: Connection) -> None:
    """A restart, or a declaration with the same times, loses no due time."""
    entry = entry_of(missed=Missed.ALL)
    add(store, connection, entry, hours=3)
    assert declare(store, connection, replace(entry, jitter=1.0))[1] == ["hourly"]
    [made] = make(store, connection)
    assert len(made.jobs) == 3


def test_code_takes_an_entry_over(store: Store, connection: Connection) -> None:
    """One that was added while the app ran becomes the code's."""
    add(store, connection, entry_of(), hours=3)
    assert declare(store, connection, entry_of(missed=Missed.SKIP))[1] == ["hourly"]
    found = records(store, connection)["hourly"]
    assert (found.entry.missed, found.declared) == (Missed.SKIP, True)


@pytest.mark.parametrize("how", ["close", "rescue"])
def test_an_entry_that_no_worker_declares(store: Store, connection: Connection, how: str) -> None:
    """While one worker has it, it is run; then it is kept, and not run until one has it again."""
    entry = entry_of(missed=Missed.ALL)
    add(store, connection, entry, hours=3)
    timeout = 0.05 if how == "rescue" else 600.0
    old = open_session(store, connection, timeout=timeout)
    connection.run(store.cron.declare(old, [entry]))
    add(store, connection, entry_of("by hand"))
    # A new worker, whose code has another entry instead, does not take it away.
    declare(store, connection, entry_of("instead"))
    assert not records(store, connection)["hourly"].undeclared
    end(store, connection, old, how)
    found = records(store, connection)
    assert [name for name, listed in found.items() if listed.undeclared] == ["hourly"]
    assert make(store, connection) == []
    assert connection.run(store.look(["default"], cron=True)).cron != 0
    declare(store, connection, entry)
    assert len(make(store, connection)[0].jobs) == 3


def end(store: Store, connection: Connection, session: Any, how: str) -> None:
    """End a session in order, or by not renewing it."""
    if how == "close":
        connection.run(store.close_session(session))
        return

    def gone() -> bool | None:
        return any(rescue.session == session for rescue in connection.run(store.rescue())) or None

    until(gone)


def test_what_dead_workers_declared_is_forgotten(store: Store, connection: Connection) -> None:
    """It leaves no rows behind for ever."""
    for _ in range(5):
        session, _ = declare(store, connection, entry_of())
        connection.run(store.close_session(session))  # type: ignore[arg-type]
    declare(store, connection, entry_of())
    assert count(store, "worker") == 1


def test_marks_are_forgotten(store: Store, connection: Connection) -> None:
    """Each new one forgets the tenth before it."""
    add(store, connection, entry_of(missed=Missed.ALL), hours=30)
    while make(store, connection, jobs=1):
        pass
    before = records(store, connection)
    if store.name == "postgres":
        assert count(store, "mark") == 10
    connection.run(store.tidy())
    assert records(store, connection) == before
    assert make(store, connection) == []


def count(store: Store, table: str) -> int:
    transaction = store.transaction()
    prefix = "rota." if store.name == "postgres" else "rota_"
    driver: Any = transaction.connection
    [found] = driver.execute(f"SELECT count(*) FROM {prefix}cron_{table}").fetchone()
    transaction.rollback()
    return int(found)


def test_two_workers_that_start_at_once(store: Store) -> None:
    """Both declare the same entries; each is there once."""
    entries = [entry_of(f"e{number}") for number in range(30)]
    start = threading.Barrier(3)
    failures: list[BaseException] = []

    def work(mine: list[CronEntry]) -> None:
        try:
            with closing(store.connect()) as own:
                session = open_session(store, own)
                start.wait()
                own.run(store.cron.declare(session, mine))
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    orders = [entries, entries[::-1], [replace(entry, jitter=1.0) for entry in entries]]
    threads = [threading.Thread(target=work, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with closing(store.connect()) as own:
        assert len(records(store, own)) == 30
