"""Unique and limited jobs, subjects, and what handlers tell, in transactions that complete the job."""

import sqlite3
import threading
from contextlib import closing
from typing import Any

import psycopg
import pytest

from rota import (
    Again,
    Backoff,
    Context,
    Discard,
    JobHandle,
    Limit,
    Placing,
    Rota,
    State,
    Unique,
)
from rota.events import JobsClaimed
from rota.worker import claim
from rota.worker import note_writer as writing
from tests.fixtures.workers import LONG, drained, records, until, until_it_sleeps, working

pytestmark = pytest.mark.both

INSERT = {"sqlite": "INSERT INTO effect VALUES (?)", "postgres": "INSERT INTO effect VALUES (%s)"}

AT_ONCE = Backoff(first=0, factor=1, jitter=0)


class OwnError(Exception):
    """An error of the handler's."""


@pytest.fixture(autouse=True)
def table(app: Rota) -> None:
    """A table of the handlers'."""
    with app.transaction() as tx:
        tx.execute("CREATE TABLE effect (number integer)")


@pytest.fixture
def insert(app: Rota) -> str:
    """A statement of a handler's."""
    return INSERT[app.database.store.name]


def opened(app: Rota) -> Any:
    """A connection of the handler's own."""
    if app.database.store.name == "sqlite":
        return sqlite3.connect(app.url.removeprefix("sqlite:///"))
    return psycopg.connect(app.url)


def effects(app: Rota) -> list[int]:
    """What handlers have written."""
    with app.transaction() as tx:
        return sorted(row[0] for row in tx.execute("SELECT number FROM effect").fetchall())


# Keys and places ----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_the_key_of_a_job(app: Rota, insert: str, end: str) -> None:
    """It is free as soon as the transaction is committed; after a rollback it is still the job's."""
    inside: list[JobHandle[Any]] = []
    after: list[JobHandle[Any]] = []

    @app.task(name="write", unique="one", retry=AT_ONCE)
    def write(ctx: Context, *, first: bool = True) -> None:
        if not first:
            return
        later = app.tasks["write"].using(delay=3600)
        try:
            with ctx.transaction() as tx:
                tx.execute(insert, [ctx.attempt])
                inside.append(later.using(conn=tx).enqueue(first=False))
                if ctx.attempt == 1 and end == "rollback":
                    raise OwnError
        finally:
            after.append(later.enqueue(first=False))

    with working(app):
        job = write.enqueue()
        attempts = 1 if end == "commit" else 2
        until(lambda: len(after) == attempts, "the attempts")
        record = job.wait(LONG)
    assert (record.state, record.attempt) == (State.COMPLETED, attempts)
    assert effects(app) == [attempts]
    assert {one.id for one in inside} == {job.id}
    if end == "rollback":
        assert (after[0].placing, after[0].id) == (Placing.SKIPPED, job.id)
    assert (after[-1].placing, after[-1].status) == (Placing.CREATED, State.SCHEDULED)


def test_the_place_of_a_job(app: Rota, insert: str) -> None:
    """It is free with the commit, though the handler goes on; after a rollback it was never free."""
    began: list[str] = []
    go = threading.Event()

    @app.task(name="write", limit=Limit(running=1), retry=AT_ONCE)
    def write(ctx: Context, name: str) -> None:
        began.append(f"{name} {ctx.attempt}")
        with ctx.transaction() as tx:
            tx.execute(insert, [ctx.attempt])
            if name == "first" and ctx.attempt == 1:
                assert records(app, State.AVAILABLE)
                raise OwnError
        if name == "first":
            go.wait(LONG)

    write.enqueue_many([("first",), ("second",)])
    with working(app):
        until(lambda: len(began) == 3, "both to have begun")
        go.set()
        until(lambda: len(records(app, State.COMPLETED)) == 2, "both to end")
    assert sorted(began) == ["first 1", "first 2", "second 1"]
    assert began[0] == "first 1"
    assert effects(app) == [1, 2]


@pytest.mark.parametrize("end", ["block", "commit", "rollback"])
def test_a_freed_place_is_taken_at_once(
    app: Rota, insert: str, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The worker that frees it claims at once, whoever commits or rolls back."""
    monkeypatch.setattr(claim, "SHORTEST_NAP", LONG)
    began: list[int] = []

    @app.task(name="write", limit=Limit(running=1), max_attempts=1)
    def write(ctx: Context, number: int) -> None:
        began.append(number)
        until_it_sleeps(app)
        if end == "block":
            with ctx.transaction() as tx:
                tx.execute(insert, [number])
            return
        with closing(opened(app)) as conn:
            with ctx.transaction(conn, commit=False):
                conn.execute(insert, [number])
            getattr(conn, end)()

    write.enqueue_many([(1,), (2,), (3,)])
    with working(app, poll=LONG, upkeep=False):
        until(lambda: all(job.state.finished for job in records(app)), "all to end")
    assert began == [1, 2, 3]
    assert effects(app) == ([] if end == "rollback" else [1, 2, 3])


def test_a_place_freed_by_a_job_with_a_lease_of_its_own(
    app: Rota, insert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is taken at once as well, when nothing else of the job's first lease is left."""
    began: list[str] = []
    inside = threading.Event()
    claimed: list[int] = []
    app.on(JobsClaimed)(lambda event: claimed.append(event.count))
    monkeypatch.setattr(claim, "SHORTEST_NAP", LONG)

    @app.task(name="write", limit=Limit("{key}", running=1))
    def write(ctx: Context, key: str) -> None:
        began.append(key)
        if key == "quick":
            assert inside.wait(LONG)
            until_it_sleeps(app)
            return
        with ctx.transaction() as tx:
            inside.set()
            if (
                app.database.store.name == "postgres"
            ):  # on SQLite nothing is settled beside a transaction
                # The settlement of the quick one has woken the claimer, in vain.
                until(lambda: claimed.count(0) >= 2, "the quick one to be settled")
            until_it_sleeps(app)
            tx.execute(insert, [1])
            raise Discard("enough")

    write.enqueue_many([("slow",), ("quick",), ("slow",)])
    with working(app, poll=LONG, upkeep=False):
        until(lambda: len(records(app, State.DISCARDED)) == 2, "all to end")
    assert sorted(began) == ["quick", "slow", "slow"]
    assert effects(app) == []


# Subjects -----------------------------------------------------------------------------------------


def test_rounds_in_a_block(app: Rota, insert: str) -> None:
    """Again that is raised there undoes what was written and counts as a round, with the key kept."""
    rounds: list[int] = []

    @app.task(name="crawl", unique="site", max_attempts=1)
    def crawl(ctx: Context) -> None:
        with ctx.transaction() as tx:
            rounds.append(ctx.attempt)
            tx.execute(insert, [len(rounds)])
            if len(rounds) < 3:
                assert crawl.using(conn=tx).enqueue().id == ctx.job_id
                raise Again(after=0.01)

    job = crawl.enqueue()
    drained(app)
    record = job.record()
    assert (record.state, record.iteration, record.attempt) == (State.COMPLETED, 2, 1)
    assert (rounds, effects(app)) == ([1, 1, 1], [3])
    assert crawl.enqueue().placing is Placing.CREATED


def test_a_subject_of_a_rolled_back_transaction(app: Rota) -> None:
    """It never comes round, and leaves neither a key nor rounds; the next one begins at none."""
    rounds: list[int] = []

    @app.task(name="crawl", unique="site")
    def crawl(ctx: Context) -> Again | None:
        rounds.append(ctx.job_id)
        return Again(after=0.01) if len(rounds) < 3 else None

    def fail() -> None:
        with app.transaction() as tx:
            assert crawl.using(conn=tx).enqueue().placing is Placing.CREATED
            raise OwnError

    with pytest.raises(OwnError):
        fail()
    drained(app)
    assert (rounds, records(app)) == ([], [])
    job = crawl.enqueue()
    assert job.placing is Placing.CREATED
    assert job.record().iteration == 0
    drained(app)
    assert job.record().iteration == 2
    assert rounds == [job.id] * 3


def test_a_subject_whose_replacement_is_rolled_back(app: Rota) -> None:
    """Between two rounds it stays what it was: its time, its args and its count."""

    @app.task(name="crawl", unique=Unique(key="site", on_conflict="replace"))
    def crawl(depth: int = 1) -> Again:
        del depth
        return Again(after=3600)

    def fail() -> None:
        with app.transaction() as tx:
            assert crawl.using(conn=tx).enqueue(2).placing is Placing.REPLACED
            raise OwnError

    with working(app):
        job = crawl.enqueue()
        until(lambda: job.record().iteration == 1, "the first round to end")
        before = job.record()
        assert before.state is State.SCHEDULED
        with pytest.raises(OwnError):
            fail()
        assert job.record() == before
        assert crawl.enqueue(3).placing is Placing.REPLACED
        until(lambda: job.record().iteration == 2, "a round at once")


# What handlers tell -------------------------------------------------------------------------------


def test_what_is_told_in_a_block_that_is_rolled_back(
    app: Rota, insert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays, for it is no part of the transaction; what the block wrote does not."""
    monkeypatch.setattr(writing, "PACE", 0.05)

    @app.task(name="write", retry=AT_ONCE)
    def write(ctx: Context) -> None:
        with ctx.transaction() as tx:
            tx.execute(insert, [ctx.attempt])
            ctx.log(f"attempt {ctx.attempt}")
            ctx.progress(ctx.attempt / 4)
            if ctx.attempt == 1:
                raise OwnError

    with working(app):
        job = write.enqueue()
        assert job.wait(LONG).attempt == 2
        # A transaction that completes its job does not wait for what is told.
        until(lambda: len(job.record().log) == 2, "what the last attempt told")
    record = job.record()
    assert effects(app) == [2]
    assert [(line.attempt, line.message) for line in record.log] == [
        (1, "attempt 1"), (2, "attempt 2"),
    ]  # fmt: skip
    assert record.progress is not None
    assert (record.progress.fraction, record.progress.attempt) == (0.5, 2)


def test_last_words_of_blocks_that_fail(
    app: Rota, insert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sees that such a job has ended finds all that it told, of each job of one claim."""
    monkeypatch.setattr(writing, "PACE", LONG)

    @app.task(name="write")
    def write(ctx: Context, number: int) -> None:
        with ctx.transaction() as tx:
            tx.execute(insert, [number])
            ctx.log(f"first {number}")
            ctx.log(f"last {number}")
            raise Discard("enough")

    jobs = write.enqueue_many([(number,) for number in range(4)])
    with working(app):
        found = [app.job(job).wait(LONG) for job in jobs]
    for number, record in enumerate(found):
        assert record.state is State.DISCARDED
        assert [line.message for line in record.log] == [f"first {number}", f"last {number}"]
    assert effects(app) == []
