"""`rota.enqueue()`: jobs from SQL, the same as those from Python."""

import json
import secrets
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from rota.args import ArgsCodec
from rota.model.job import JobFilter, JobId, JobRecord
from rota.model.states import State
from rota.store.migrate import migrate
from rota.store.postgres.store import PostgresStore
from tests.store.factories import until
from tests.store.postgres.database import KEEP, Database, Later, Raw, ids
from tests.store.schema import make_old


def record(db: Database, job: int) -> JobRecord:
    """A job as Rota knows it."""
    [found] = db.own.run(db.store.get([JobId(job)]))
    return found


def counted(db: Database, state: State) -> int:
    """How many jobs of the queue are in a state."""
    return sum(queue.counts.get(state, 0) for queue in db.own.run(db.store.queues()))


def test_the_same_job(db: Database) -> None:
    """With all options it is the job that Python would have stored, in the same order."""
    [first] = db.enqueue(1, queue="mail", priority=3, max_attempts=2, timeout=30.0)
    job = db.one(
        "SELECT rota.enqueue('shop.send', '{\"number\":0}', queue => 'mail', priority => 3,"
        " max_attempts => 2, timeout => '30 s')"
    )
    [third] = db.enqueue(1, queue="mail", priority=3)
    one, other = record(db, first), record(db, job)
    for name in (
        "task",
        "args",
        "queue",
        "priority",
        "state",
        "attempt",
        "max_attempts",
        "timeout",
    ):
        assert getattr(one, name) == getattr(other, name), name
    assert counted(db, State.AVAILABLE) == 3
    session = db.session()
    claimed = db.claim(session, queues=("mail",))
    assert ids(claimed) == [first, job, third]
    assert db.settle(session, claimed, keep=KEEP) == []
    assert counted(db, State.COMPLETED) == 3


def test_a_lane_that_is_rolled_back(db: Database) -> None:
    """No producer goes on with a lane whose transaction was rolled back."""
    raw = db.bare()
    raw.execute("SELECT rota.enqueue('shop.send', queue => 'new')")
    db.enqueue(1, conn=raw, queue="new")
    raw.rollback()
    [job] = db.enqueue(1, queue="new")
    assert ids(db.claim(db.session(), queues=("new",))) == [job]


def test_what_is_set_for_the_queue(db: Database) -> None:
    """Attempts and timeout are those of the queue, unless the call says them."""
    db.own.run(db.store.set_queue("mail", {"max_attempts": 2, "timeout": 7.5}))
    job = record(db, db.one("SELECT rota.enqueue('shop.send', queue => 'mail')"))
    assert (job.max_attempts, job.timeout) == (2, 7.5)
    job = record(db, db.one(
        "SELECT rota.enqueue('shop.send', queue => 'mail', max_attempts => 3, timeout => '1 s')"
    ))  # fmt: skip
    assert (job.max_attempts, job.timeout) == (3, 1.0)
    job = record(db, db.one("SELECT rota.enqueue('shop.send')"))
    assert (job.max_attempts, job.timeout) == (5, None)


@pytest.mark.parametrize("when", ["delay => '1 hour'", "run_at => now() + interval '1 hour'"])
def test_later(db: Database, when: str) -> None:
    """A job with a time waits for it, and is counted as scheduled."""
    job = db.one(f"SELECT rota.enqueue('shop.send', {when})")
    found = record(db, job)
    assert found.state is State.SCHEDULED
    assert found.scheduled_at is not None
    assert timedelta(minutes=59) < found.scheduled_at - found.enqueued_at < timedelta(minutes=61)
    assert counted(db, State.SCHEDULED) == 1


@pytest.mark.parametrize("moment", ["'2001-01-01 00:00+00'", "now()", "clock_timestamp()"])
def test_a_past_moment_is_no_wait(db: Database, moment: str) -> None:
    """A job for a time that has passed is available at once, and needs no staging."""
    due = db.one(f"SELECT rota.enqueue('shop.send', run_at => {moment})")
    found = record(db, due)
    assert (found.state, found.scheduled_at) == (State.AVAILABLE, None)
    assert counted(db, State.SCHEDULED) == 0
    assert ids(db.claim(db.session())) == [due]


def test_at_once(db: Database) -> None:
    """A delay of nothing is none."""
    job = db.one("SELECT rota.enqueue('shop.send', delay => '0')")
    assert record(db, job).state is State.AVAILABLE


def test_headers(db: Database) -> None:
    """They are those of a setting, which may hold for a transaction; an empty one is none."""
    with db.bare() as conn, conn.transaction():
        conn.execute('SET LOCAL rota.headers = \'{"trace":"a"}\'')
        [now] = conn.execute("SELECT rota.enqueue('shop.send')").fetchone() or ()
        [later] = conn.execute("SELECT rota.enqueue('shop.send', delay => '1 h')").fetchone() or ()
    assert record(db, now).headers == record(db, later).headers == {"trace": "a"}
    for none in ("", "{}"):
        db.sql("SELECT set_config('rota.headers', %s, false)", none)
        job = db.one("SELECT rota.enqueue('shop.send')")
        assert db.one("SELECT headers FROM rota.log WHERE id = %s", job) is None


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ("[]", "a JSON object of texts is needed"),
        ('{"a":1}', "a JSON object of texts is needed"),
        ('{"a":null}', "a JSON object of texts is needed"),
        ('{"rota.expires":"now"}', "a JSON object of texts is needed"),
        ('{"":"b"}', "a JSON object of texts is needed"),
        ('{"a', "a JSON object of texts is needed"),
        (r'{"a":"\u0000"}', "a JSON object of texts is needed"),
        (json.dumps({"a": "x" * 4096}), "bytes, the limit is 4096"),
    ],
)
def test_headers_that_are_refused(db: Database, headers: str, why: str) -> None:
    """The error says what is possible, and nothing is stored."""
    db.sql("SELECT set_config('rota.headers', %s, false)", headers)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=why):
        db.sql("SELECT rota.enqueue('shop.send')")
    assert db.one("SELECT count(*) FROM rota.log") == 0


NUMBER = "args: a number is an integer beyond 64 bits, or no float can hold it"

REFUSED = {
    "''": "task: a name of 1 to 200",
    "NULL": "task: a name of 1 to 200",
    "' x'": "task: a name of 1 to 200",
    "E'a\\nb'": "task: a name of 1 to 200",
    "repeat('x', 201)": "task: a name of 1 to 200",
    "'x', '[1]'": "args: a JSON object is needed, not array",
    "'x', NULL": "args: a JSON object is needed, not NULL",
    "'x', NULL::jsonb": "args: a JSON object is needed, not NULL",
    "'x', 'null'": "args: a JSON object is needed, not null",
    "'x', 7": "args: a JSON object is needed, not number",
    "'x', '{\"a'": "args: invalid input syntax for type json",
    "'x', '{\"a\":\"\\u0000\"}'": "\\u0000 cannot be converted to text",
    "'x', '{\"a\":\"\\ud800\"}'::json": "low surrogate must follow",
    "'x', json_build_object('a', repeat('x', 1000000))": "bytes, the limit is 1000000",
    "'x', json_build_object('a', repeat('ä', 500000))": "bytes, the limit is 1000000",
    "'x', '{\"a\":1e400}'": NUMBER,
    "'x', '{\"a\":[{\"b\":-1E+309}]}'": NUMBER,
    "'x', jsonb '{\"a\":1e400}'": NUMBER,
    "'x', '{\"a\":1e-400}'": NUMBER,
    "'x', '{\"a\":9223372036854775808}'": NUMBER,
    "'x', '{\"a\":[0,-9223372036854775809]}'": NUMBER,
    "'x', json_build_object('a', 123456789012345678901234567890)": NUMBER,
    "'x', jsonb_build_object('a', 123456789012345678901234567890)": NUMBER,
    "'x', ('{\"a\":' || repeat('[', 102) || repeat(']', 102) || '}')::json": "more than 100 levels",
    "'x', '{\"a\":' || repeat('[', 300000) || repeat(']', 300000) || '}'": "stack depth limit",
    "'x', queue => 'a '": "queue: a name of 1 to 200",
    "'x', queue => E'a\\u200b'": "queue: a name of 1 to 200",
    "'x', priority => 40000": "priority: a whole number between",
    "'x', max_attempts => 0": "max_attempts: between 1 and",
    "'x', delay => '1 s', run_at => now()": "exclude each other",
    "'x', delay => '-1 s'": "delay: between 0 and 3162240000 seconds",
    "'x', delay => '878400 hours 1 second'": "delay: between 0 and 3162240000 seconds",
    "'x', delay => '200000 years'": "delay: between 0 and 3162240000 seconds",
    "'x', run_at => 'infinity'": "run_at: a moment after the year 0 and at most a century",
    "'x', run_at => '-infinity'": "run_at: a moment after the year 0 and at most a century",
    "'x', run_at => '20000-01-01 00:00+00'": "run_at: a moment after the year 0 and at most a century",
    "'x', run_at => '0044-03-15 00:00+00 BC'": "run_at: a moment after the year 0 and at most a century",
    "'x', timeout => '0'": "timeout: more than 0 and at most 3162240000 seconds",
    "'x', timeout => '200 years'": "timeout: more than 0 and at most 3162240000 seconds",
}


@pytest.mark.parametrize("given", REFUSED)
def test_refused(db: Database, given: str) -> None:
    """What Python refuses is refused, with what to do; nothing is stored."""
    with pytest.raises(psycopg.errors.InvalidParameterValue) as raised:
        db.sql(f"SELECT rota.enqueue({given})")
    assert REFUSED[given] in str(raised.value)
    assert raised.value.diag.message_hint
    assert db.one("SELECT count(*) FROM rota.log") == db.one("SELECT count(*) FROM rota.lane") == 0


def test_as_far_as_python_goes(db: Database) -> None:
    """What is just within the limits is a job, and can be looked at from every time zone."""
    nested = "[" * 100 + "1" + "]" * 100
    for given in (
        f"""'{{"a":{nested}}}'""",
        "json_build_object('a', repeat('x', 999990))",
        "delay => '878400 hours'",
        "timeout => '878400 hours'",
        "run_at => '0001-01-01 00:00+00'",
        "run_at => now() + interval '99 years'",
    ):
        record(db, db.one(f"SELECT rota.enqueue('shop.send', {given})"))
    for zone in ("Asia/Tokyo", "America/Lima"):
        db.sql(f"ALTER DATABASE {db.admin.info.dbname} SET timezone = '{zone}'")
        assert len(db.connect().run(db.store.list_jobs(JobFilter()))) == 6


NUMBERS = [
    "9223372036854775807", "-9223372036854775808", "1e30", "-1.7976931348623157E+308", "5e-324",
    "0.1000000000000000055511151231257827", "12345678901234567890.5", "0e999", "-0.0",
    '"123456789012345678901234567890 1e400"',
]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_that_python_reads(db: Database, number: str) -> None:
    """What Python reads, as an integer of 64 bits or as a float, is a job that a worker can run."""
    job = db.one("SELECT rota.enqueue('shop.send', %s::text)", f'{{"number":{number}}}')
    assert record(db, job).args == f'{{"number":{number}}}'
    args, kwargs = ArgsCodec(_send, "shop.send").decode(record(db, job).args)
    assert [*args, *kwargs.values()] == [json.loads(number)]


def test_names(db: Database) -> None:
    """A name may have the characters that Python prints, and no others that are assigned."""
    kinds: dict[bool, list[str]] = {True: [], False: []}
    for character in map(chr, range(1, sys.maxunicode + 1)):
        if unicodedata.category(character) not in {"Cn", "Cs"}:
            kinds[character.isprintable()].append(character)
    printable = "".join(kinds[True]).replace(" ", "")
    names = [printable[start : start + 200] for start in range(0, len(printable), 200)]
    db.sql("SELECT rota.enqueue(name) FROM unnest(%s::text[]) AS name", names)
    # Of the many for private use one in a thousand.
    odd = [
        character
        for character in kinds[False]
        if ord(character) < 0xE000 or ord(character) % 1000 == 0
    ]
    for character in odd:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="printable"):
            db.sql("SELECT rota.enqueue(%s)", f"a{character}b")


@pytest.mark.parametrize(
    "given",
    [
        """'{"number":0}'""",
        """args => '{"number":0}'""",
        """'{"number"' || ':0}'""",
        """'{"number":0}'::json""",
        """'{"number":0}'::jsonb""",
        """args => jsonb_build_object('number', 0)""",
    ],
)
def test_types_of_args(db: Database, given: str) -> None:
    """Args may be json, jsonb, text, or a literal without a type, with and without their name."""
    job = record(db, db.one(f"SELECT rota.enqueue('shop.send', {given}, queue => 'mail')"))
    assert (job.args.replace(" ", ""), job.queue) == ('{"number":0}', "mail")


def test_who_has_called_an_older_version(postgres_url: str) -> None:
    """Statements and triggers from before the migration go on in the same connection."""
    store = PostgresStore(postgres_url)
    with closing(store.connect()) as own, psycopg.connect(postgres_url) as caller:
        make_old(store, own, 10)
        caller.execute("PREPARE send (json) AS SELECT rota.enqueue('shop.send', $1)")
        caller.execute(
            "CREATE FUNCTION send() RETURNS bigint LANGUAGE plpgsql AS"
            " $$ BEGIN RETURN rota.enqueue('shop.send', json_build_object('number', 1)); END $$"
        )
        calls = ("EXECUTE send ('{}')", "SELECT send()")
        for call in calls:
            caller.execute(call)
        caller.commit()
        assert migrate(store, own)[0] == 11
        for call in calls:
            caller.execute(call)
        caller.commit()
        assert len(own.run(store.list_jobs(JobFilter()))) == 4


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_in_a_transaction(db: Database, end: str) -> None:
    """The job is there if and only if the transaction commits, with the lane that it has made."""
    raw = db.bare()
    raw.execute("SELECT rota.enqueue('shop.send')")
    assert db.claim(db.session()) == []
    getattr(raw, end)()
    assert len(db.claim(db.session())) == (end == "commit")
    assert db.one("SELECT count(*) FROM rota.lane") == (end == "commit")
    assert len(db.enqueue(1)) == 1


def test_producers_do_not_wait(db: Database) -> None:
    """Once the lane exists, no producer waits for an open transaction, under any snapshot."""
    db.enqueue(1)
    old = db.bare()
    old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    old.execute("SELECT count(*) FROM rota.job")
    raw = db.bare()
    raw.execute("SELECT rota.enqueue('shop.send')")
    db.sql("SET statement_timeout = '10s'")
    db.sql("SELECT rota.enqueue('shop.send')")
    old.execute("SELECT rota.enqueue('shop.send')")
    old.commit()
    session = db.session()
    assert len(db.claim_all(session)) == 3
    raw.commit()
    assert len(db.claim_all(session)) == 1


def test_the_first_job_of_a_lane(db: Database) -> None:
    """Two that make the same lane: the second waits for the first, and both jobs are there."""
    raw = db.bare()
    raw.execute("SELECT rota.enqueue('shop.send')")
    from rota.store.postgres.lanes import ensure_lane

    second = Later(db, ensure_lane("default", 0))
    until(lambda: db.waits_for(second.pid, raw.info.backend_pid) or None)
    raw.commit()
    assert second.result() == db.one("SELECT id FROM rota.lane")
    assert db.one("SELECT count(*) FROM rota.cursor") == 1
    db.enqueue(1)
    assert len(db.claim(db.session())) == 2


def test_waking(db: Database) -> None:
    """A worker that sleeps is notified at the commit; where none sleeps, nothing is sent."""
    waker = db.store.waker(["default"])
    try:
        assert not waker.wait(0.01)
        db.sql("SELECT rota.enqueue('shop.send')")
        assert waker.wait(20)
    finally:
        waker.close()
    prepared = db.bare()
    prepared.execute("SELECT rota.enqueue('shop.send')")
    prepared.execute("PREPARE TRANSACTION 'rota sql'")
    db.sql("COMMIT PREPARED 'rota sql'")
    assert len(db.claim(db.session())) == 2


@pytest.fixture
def producer(db: Database) -> Iterator[Raw]:
    """A role that may do what docs/guides/sql.md grants."""
    from tests.docs.pages import ROOT

    name = f"producer_{secrets.token_hex(4)}"
    db.sql(f"CREATE ROLE {name}")
    page = (ROOT / "docs" / "guides" / "sql.md").read_text(encoding="utf-8")
    grants = [line for line in page.splitlines() if line.startswith("GRANT ")]
    assert grants
    for grant in grants:
        db.sql(grant.replace(" TO producer;", f" TO {name}"))
    raw = db.bare(autocommit=True)
    raw.execute(f"SET ROLE {name}".encode())
    yield raw
    raw.close()
    db.sql(f"DROP OWNED BY {name}")
    db.sql(f"DROP ROLE {name}")


def test_another_role(db: Database, producer: Raw) -> None:
    """It enqueues with no more rights than the page gives, the first job of a lane too."""
    producer.execute("SELECT rota.enqueue('shop.send', queue => 'new')")
    producer.execute("SELECT rota.enqueue('shop.send', queue => 'new', delay => '1 hour')")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        producer.execute("SELECT * FROM rota.log")
    assert len(db.claim(db.session(), queues=("new",))) == 1


def test_a_trigger(db: Database) -> None:
    """A trigger enqueues in the transaction that fires it."""
    db.sql(
        "CREATE TABLE orders (id integer);"
        "CREATE FUNCTION send_receipt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM rota.enqueue('shop.send', json_build_object('number', NEW.id)); RETURN NULL; END $$;"
        "CREATE TRIGGER receipt AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION send_receipt()"
    )
    db.enqueue(1)
    raw = db.bare()
    raw.execute("INSERT INTO orders VALUES (1)")
    raw.rollback()
    raw.execute("INSERT INTO orders VALUES (7), (8)")
    raw.commit()
    jobs = db.claim(db.session())
    assert [job.args.replace(" ", "") for job in jobs] == [f'{{"number":{n}}}' for n in (0, 7, 8)]


def _send(number: Any) -> None:
    del number
