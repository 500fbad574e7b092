"""Statements that leave in one piece, and what the client may do before it reads the answer."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TypeVar

import pytest

from rota.errors import StoreError, StoreUnavailable
from rota.model.job import ClaimedJob, JobId, JobSpec, Order, SessionId
from rota.store.operation import (
    Apart,
    Begin,
    Rows,
    Single,
    Statement,
    Stepped,
    Steps,
    Together,
)
from rota.store.postgres import sessions
from rota.store.postgres.connection import PostgresConnection
from rota.store.postgres.store import PostgresStore
from tests.fixtures.proxy import Proxy
from tests.store.factories import claim, until
from tests.store.keying import keys_of, limited
from tests.store.postgres.database import Database, Later, ids

T = TypeVar("T")

SYNC = b"S\x00\x00\x00\x04"
"""The message with which a client ends a transaction (PostgreSQL's manual, "Message Formats")."""

NOBODY = "SELECT WHERE %(locked)s::int8[] IS NULL"
SINCE = "SELECT now() - xact_start > '0.1 s' FROM pg_stat_activity WHERE pid = %s"

ADD = Statement("add", "INSERT INTO numbers VALUES (%(number)s::int8) RETURNING number, 'x'::text")
DOUBLE = Statement("double", "SELECT 2 * %(number)s::int8")
DIVIDE = Statement("divide", "SELECT 1 / %(number)s::int8")


@pytest.fixture
def numbers(db: Database) -> Database:
    """A database with a table of numbers."""
    db.sql("CREATE TABLE numbers (number int8)")
    return db


@pytest.fixture
def said(db: Database) -> Iterator[tuple[PostgresConnection, list[bytes]]]:
    """A connection, and what goes over it, piece by piece."""
    with Proxy(db.url) as proxy, closing(PostgresStore(proxy.url).connect()) as connection:
        yield connection, proxy.said


def adding(*numbers: int, lasting: bool = False) -> Together[list[int]]:
    """Add these, and give them back."""
    queries = tuple(ADD(number=number) for number in numbers)
    return Together("adding", queries, lambda found: [rows[0][0] for rows in found], lasting)


@pytest.mark.parametrize("lasting", [False, True])
def test_in_one_piece(
    numbers: Database, said: tuple[PostgresConnection, list[bytes]], *, lasting: bool
) -> None:
    """Nothing can come between the statements and the word that ends their transaction."""
    connection, pieces = said
    # The server learns them first.
    assert connection.run(adding(1, lasting=lasting)) == [1]
    del pieces[:]
    assert connection.run(adding(2, 3, 4, lasting=lasting)) == [2, 3, 4]
    assert len(pieces) <= 1 + lasting
    assert all(piece.endswith(SYNC) for piece in pieces)
    assert numbers.sql("SELECT * FROM numbers") == [(1,), (2,), (3,), (4,)]


@pytest.mark.parametrize("keyed", [False, True])
def test_claims_are_in_one_piece(
    db: Database, said: tuple[PostgresConnection, list[bytes]], *, keyed: bool
) -> None:
    """A worker frozen in the middle of a claim keeps others neither from the lane nor from a turn."""
    connection, pieces = said
    if keyed:
        limited(db.store, db.own, list("abcdefgh"))
    else:
        db.enqueue(8)
    session = db.session()
    store = PostgresStore(db.url)
    for _ in range(4):
        del pieces[:]
        assert len(connection.run(store.claim(session, ["default"], 2, woken=True))) == 2
    # The server has learnt all of them by now. With keys: the claim, and that it is on disk.
    assert len(pieces) <= 1 + keyed
    assert all(piece.endswith(SYNC) for piece in pieces)


def test_an_answer_that_nobody_reads(db: Database) -> None:
    """A claim is done without its client; others need not wait for it."""
    limited(db.store, db.own, list("abcd"))
    session = db.session()
    # The second time all of it is sent at once.
    assert len(claim(db.store, db.own, session, 1)) == 1
    answer = db.own.send(db.store.claim(session, ["default"], 1, woken=True))
    other = Later(db, db.store.claim(session, ["default"], 10))
    found = keys_of(other.result())
    assert sorted(found + keys_of(answer())) == list("bcd")


def test_a_worker_that_is_frozen_while_it_reads(db: Database) -> None:
    """A rescue ends what holds its session and the lane."""
    jobs = large(db)
    session, other = db.session(timeout=0.5), db.session()
    assert ids(claim(db.store, db.own, session, 1)) == jobs[:1]
    pid, answer = half_read(db, session)
    claimed = Later(db, db.store.claim(other, ["default"], len(jobs), woken=True))
    until(lambda: db.waits_for(claimed.pid, pid) or None)
    rescuer = db.connect()
    [rescue] = until(lambda: rescuer.run(db.store.rescue()) or None)
    assert (rescue.session, list(rescue.available)) == (session, jobs[:1])
    assert ids(claimed.result()) == jobs[1:]
    with pytest.raises(StoreUnavailable):
        answer()


def test_a_worker_that_is_left_frozen(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: without that end it keeps what it has, however long."""
    monkeypatch.setattr(sessions, "RESCUE_END", Statement("rescue_end", NOBODY))
    jobs = large(db)
    session = db.session(timeout=0.001)
    assert ids(claim(db.store, db.own, session, 1)) == jobs[:1]
    pid, answer = half_read(db, session)
    until(lambda: db.one(SINCE, pid) or None)
    assert db.connect().run(db.store.rescue()) == []
    assert ids(answer()) == jobs[1:]


def test_a_worker_that_reads_slowly(db: Database) -> None:
    """A living session is left alone, whichever other is dead."""
    jobs = large(db)
    dead, session = db.session(timeout=0.001), db.session(timeout=600.0)
    assert ids(claim(db.store, db.own, dead, 1)) == jobs[:1]
    _, answer = half_read(db, session)
    rescuer = db.connect()
    [rescue] = until(lambda: rescuer.run(db.store.rescue()) or None)
    assert (rescue.session, list(rescue.available)) == (dead, jobs[:1])
    assert rescuer.run(db.store.rescue()) == []
    assert ids(answer()) == jobs[1:]


def test_a_worker_that_reads_for_longer_than_its_timeout(db: Database) -> None:
    """It is left alone as long as it renews."""
    jobs = large(db)
    session, keeper = db.session(timeout=2.0), db.connect()
    assert ids(claim(db.store, db.own, session, 1)) == jobs[:1]
    pid, answer = half_read(db, session)
    since = "SELECT now() - xact_start > '2.1 s' FROM pg_stat_activity WHERE pid = %s"
    until(lambda: keeper.run(db.store.renew(session)).alive and (db.one(since, pid) or None))
    assert keeper.run(db.store.rescue()) == []
    assert ids(answer()) == jobs[1:]


def large(db: Database) -> list[JobId]:
    """Jobs of which no buffer between server and client holds all."""
    args = [f'"{"x" * 1_000_000}"'] * 16
    return db.own.run(db.store.enqueue(Order(JobSpec("large"), args)))


def half_read(db: Database, session: SessionId) -> tuple[int, Callable[[], list[ClaimedJob]]]:
    """The server's process that waits for its client to take a claim in; and the claim."""
    db.try_no_light_claims()
    pid = db.own.raw().info.backend_pid
    answer = db.own.send(db.store.claim(session, ["default"], 100, woken=True))
    waits = "SELECT wait_event = 'ClientWrite' FROM pg_stat_activity WHERE pid = %s"
    until(lambda: db.one(waits, pid) or None)
    return pid, answer


def test_an_error_undoes_all(numbers: Database) -> None:
    """Those before it, too; the connection stays in order."""
    for _ in range(2):
        for lasting in (False, True):
            queries = (ADD(number=1), DIVIDE(number=0), ADD(number=2))
            with pytest.raises(StoreError, match="division by zero"):
                numbers.own.run(Together("dividing", queries, len, lasting))
        assert numbers.sql("SELECT * FROM numbers") == []
    assert numbers.own.run(adding(3)) == [3]


def test_a_statement_that_takes_too_long(numbers: Database) -> None:
    """The database is there: it asks to try again."""
    numbers.own.raw().execute("SET statement_timeout = '1ms'")
    slow = Statement("slow", "SELECT pg_sleep(60)")
    for operation in Single("slow", slow(), value), Together("slow", (slow(),), len):
        with pytest.raises(StoreUnavailable, match="asks to try again: canceling statement"):
            numbers.own.run(operation)


def test_a_statement_that_cannot_be(numbers: Database) -> None:
    """What the server does not understand is an error each time."""
    nonsense = Statement("nonsense", "SELECT nothing FROM nowhere")
    for _ in range(2):
        with pytest.raises(StoreError, match="nowhere"):
            numbers.own.run(Together("nonsense", (ADD(number=1), nonsense()), len))
    assert numbers.own.run(adding(3)) == [3]


@pytest.mark.parametrize("following", ["single", "together", "sent"])
def test_an_answer_that_nobody_wants(numbers: Database, following: str) -> None:
    """It is not taken for that of the next request, and comes no more."""
    own = numbers.own
    for lasting in (False, True):
        ahead = own.send(Stepped("ahead", apart(adding(1, lasting=lasting)), Begin.NOTHING))
        match following:
            case "single":
                assert own.run(Single("double", DOUBLE(number=2), value)) == 4
            case "together":
                assert own.run(adding(2)) == [2]
            case _:
                again = Stepped("again", apart(adding(3)), Begin.NOTHING)
                assert own.send(again)() == [3]
        with pytest.raises(StoreUnavailable, match="lost before its answer was read"):
            ahead()
        assert own.run(adding(4)) == [4]


def value(rows: Rows) -> int:
    """The one number of an answer."""
    [(found,)] = rows
    return int(found)


def test_a_connection_that_is_lost_before_the_answer(db: Database) -> None:
    """The outcome is not known, and nothing is sent twice."""
    db.enqueue(3)
    session = db.session()
    assert len(claim(db.store, db.own, session, 1)) == 1
    holder = db.bare()
    holder.execute("SELECT FROM rota.lane FOR UPDATE")
    pid = db.own.raw().info.backend_pid
    answer = db.own.send(db.store.claim(session, ["default"], 1, woken=True))
    until(lambda: db.waits_for(pid, holder.info.backend_pid) or None)
    assert db.one("SELECT pg_terminate_backend(%s, 5000)", pid)
    holder.rollback()
    with pytest.raises(StoreUnavailable):
        answer()
    assert db.one("SELECT sum(cardinality(jobs)) FROM rota.lease") == 1
    assert len(claim(db.store, db.own, session, 5)) == 2


def test_a_connection_that_was_closed_before_the_answer(db: Database) -> None:
    """The answer is asked for nowhere else: that would be another claim."""
    db.enqueue(2)
    session = db.session()
    assert len(claim(db.store, db.own, session, 1)) == 1
    answer = db.own.send(db.store.claim(session, ["default"], 1, woken=True))
    db.own.close()
    with pytest.raises(StoreUnavailable):
        answer()


def test_notifications_are_kept(numbers: Database) -> None:
    """A notification that comes meanwhile is not lost to the listener on the same connection."""
    raw = numbers.own.raw()
    raw.execute("LISTEN there")
    notify = Statement("notify", "SELECT pg_notify('there', %(word)s::text)")
    numbers.own.run(Together("notify", (notify(word="own"),), len))
    numbers.sql("NOTIFY there, 'other'")
    numbers.own.run(adding(1))
    heard: list[str] = []
    while len(heard) < 2 and (found := list(raw.notifies(timeout=5, stop_after=1))):
        heard += [notice.payload for notice in found]
    assert heard == ["own", "other"]


def test_no_flush_without_limits(
    db: Database, said: tuple[PostgresConnection, list[bytes]]
) -> None:
    """Once a claim found no jobs with a limit, the next one waits for no disk."""
    connection, pieces = said
    limited(db.store, db.own, ["a", "b"])
    session = db.session()
    store = PostgresStore(db.url)

    def flushed() -> bool:
        del pieces[:]
        connection.run(store.claim(session, ["default"], 1, woken=True))
        return any(b"_flush" in piece for piece in pieces)

    assert [flushed() for _ in range(5)] == [False, True, True, False, False]


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("since", [False, True])
@pytest.mark.parametrize("flushed", [False, True])
def test_statements_that_were_forgotten(
    numbers: Database, *, ahead: bool, since: bool, flushed: bool
) -> None:
    """As psycopg has the server forget them after a ROLLBACK, also where some were learnt since."""
    connection = numbers.own
    assert connection.run(adding(1, lasting=flushed)) == [1]
    # It only does so where it has prepared one itself.
    raw = connection.raw()
    raw.execute("SELECT", prepare=True)
    known = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'rota%'"
    assert raw.execute(known, prepare=False).fetchone() == (2 + flushed,)
    with pytest.raises(StoreError, match="division by zero"):
        connection.run(Stepped("dividing", dividing(), Begin.DURABLE))
    assert raw.execute(known, prepare=False).fetchone() == (0,)
    assert numbers.sql("SELECT * FROM numbers") == [(1,)]
    queries = (ADD(number=2), *([DOUBLE(number=2)] if since else []))
    lasting = Together("lasting", queries, len, lasting=True)
    if ahead:
        assert connection.send(Stepped("ahead", apart(lasting), Begin.NOTHING))() == len(queries)
    else:
        assert connection.run(lasting) == len(queries)
    assert numbers.sql("SELECT * FROM numbers") == [(1,), (2,)]


def dividing() -> Steps[None]:
    """A transaction that fails, so that there is something to roll back."""
    yield DIVIDE(number=0)


def apart(together: Together[T]) -> Steps[T]:
    """Statements that go at once, as the first thing that is asked."""
    [(found,)] = yield Apart(together)
    result: T = found
    return result


def test_numbers_are_those_that_were_written(numbers: Database) -> None:
    """Also where the column is a `real`, of which a fraction in binary would not be."""
    real = Statement("real", "SELECT 0.2::real")
    assert numbers.own.run(Together("real", (real(),), lambda found: found[0][0][0])) == 0.2


def test_no_warnings(numbers: Database) -> None:
    """Nothing that the server would write into its log, too."""
    warnings: list[str | None] = []
    numbers.own.raw().add_notice_handler(lambda told: warnings.append(told.message_primary))
    assert numbers.own.run(adding(1, lasting=True)) == [1]
    assert warnings == []


def test_an_interruption_before_anything_was_sent(numbers: Database) -> None:
    """A connection that waits for statements in pieces is replaced, and fails once at most."""
    numbers.own.raw().pgconn.enter_pipeline_mode()
    with pytest.raises(StoreError):
        numbers.own.run(numbers.store.queues())
    assert numbers.own.run(numbers.store.queues()) == []
    assert numbers.own.run(adding(1)) == [1]


def test_where_statements_go_one_by_one(numbers: Database) -> None:
    """Behind a pooler it is a transaction all the same, and on disk where it has to be."""
    pooled = PostgresStore(f"{numbers.url}{'&' if '?' in numbers.url else '?'}pooler=transaction")
    with closing(pooled.connect()) as connection:
        assert connection.run(adding(1, 2)) == [1, 2]
        before = numbers.one("SELECT pg_current_wal_flush_lsn()")
        assert connection.run(adding(3, lasting=True)) == [3]
        assert numbers.one("SELECT pg_current_wal_flush_lsn() > %s", before)
        assert connection.send(adding(4))() == [4]
