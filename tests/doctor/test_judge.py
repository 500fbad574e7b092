"""From facts to findings: pure, without a database."""

from typing import Any

import pytest

from rota.doctor import horizon
from rota.doctor.amounts import duration, size
from rota.doctor.finding import Finding, Severity, few, worst
from rota.model.job import JobId
from rota.store.health import MissingRights, ReplicationFacts, RescueFacts, WaitFacts
from tests.doctor import facts as given

OK, NOTE, WARNING, CRITICAL = Severity
MIB = 1024**2


def test_health() -> None:
    """Healthy facts make only findings that are in order."""
    assert given.wrong(given.postgres()) == []
    assert given.wrong(given.sqlite(), hears=None) == []


COMMANDS = (
    "rota ", "pip ", "sqlite3 ", "ps ", "df ", "fuser ", "timedatectl ", "python ", "SELECT ",
    "GRANT ", "ALTER SYSTEM ", "VACUUM ", "ROLLBACK PREPARED ",
    "DROP PUBLICATION ", "ALTER PUBLICATION ", "DROP SUBSCRIPTION ",
)  # fmt: skip


def test_every_step_is_worth_copying() -> None:
    """Each warning and worse says what to do: a command, without remarks in its line."""
    bad = [
        *given.wrong(given.postgres(holders=(given.holder(),), work=given.work(schema=0))),
        *given.wrong(given.postgres({"standby": True, "version": 130000, "ahead": 60.0,
                                     "connections": 97, "notifications": 0.95,
                                     "frozen_age": 1_900_000_000}, foreign=True), hears=False),
        *given.wrong(given.sqlite(version="3.40.1", shared=True, journal="delete", writing=1.0,
                                  file_system="nfs4", disk_free=0, log_size=1024**3,
                                  damage=("row 3 missing",))),
    ]  # fmt: skip
    assert len(bad) >= 15
    assert [found.title for found in bad if found.severity >= WARNING and not found.advice] == []
    slots = (given.holder(kind="slot", active=False), given.holder(kind="slot"),
             given.holder(kind="standby"), given.holder(kind="prepared"))  # fmt: skip
    bad += given.wrong(given.postgres(holders=slots))
    lanes = (given.lane(oldest=9e9), given.lane(oldest=9e9, queue="video"))
    sessions = (given.session(), given.session(silent=300.0), given.session(oldest_lease=9e9))
    bad += given.wrong(given.postgres(work=given.work(lanes=lanes, sessions=sessions)))
    bad += given.wrong(given.sqlite(page_size=1024**2, pages=100, free_pages=99))
    said = [found.advice for found in bad if found.advice]
    assert [found for found in said if not found.startswith(COMMANDS) or "  " in found] == []


# Holders of the oldest snapshot -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "age", "severity"),
    [(59.0, 9, OK), (61.0, 9, NOTE), (601.0, 9, WARNING), (86_401.0, 9, CRITICAL),
     (1.0, 1_000_000, WARNING), (1.0, 200_000_000, CRITICAL), (None, 9, OK)],
)  # fmt: skip
def test_how_long(seconds: float | None, age: int, severity: Severity) -> None:
    """A transaction is worse the longer it is open, or the more others have begun since."""
    found = given.wrong(given.postgres(holders=(given.holder(seconds=seconds, age=age),)))
    assert worst(found) is severity


def test_a_session() -> None:
    """The finding says the role, since when, the cost, and how to end it."""
    tables = (*given.TABLES, given.table("session", dead_rows=70))
    found = given.only(
        given.postgres(dead_rows=1_000_070, holders=(given.holder(),), tables=tables)
    )
    assert found.title == (
        "Session 4711 of ann (psql), idle in transaction, has a transaction open for 1 h"
    )
    assert "5,000 transactions since its snapshot" in found.detail
    assert "up to 70 in Rota's tables" in found.detail
    assert "up to 1,000,000 in the others" in found.detail
    assert "does not keep Rota from freeing space" in found.detail
    assert found.advice == "SELECT pg_terminate_backend(4711);"


def test_a_session_that_touches() -> None:
    """A holder of locks on Rota's tables keeps their space, snapshot or not."""
    found = given.only(given.postgres(holders=(given.holder(age=None, touches=("log_0",)),)))
    assert "It has locked log_0: no space is freed there" in found.detail
    assert "dead rows" not in found.detail


def test_a_prepared_transaction() -> None:
    """It is named with both ways to end it; its name is quoted for SQL."""
    left = given.holder(kind="prepared", pid=None, name="it's", state="prepared")
    found = given.only(given.postgres(holders=(left,)))
    assert found.title == "Prepared transaction 'it''s' of ann has been left for 1 h"
    assert found.advice == "ROLLBACK PREPARED 'it''s';"
    assert "may want COMMIT PREPARED 'it''s' instead" in found.detail
    assert "in database shop" in found.detail


@pytest.mark.parametrize(
    ("seconds", "severity"),
    [
        (0.1, Severity.NOTE),
        (59, Severity.NOTE),
        (61, Severity.WARNING),
        (90_000, Severity.CRITICAL),
    ],
)
def test_a_prepared_transaction_of_jobs(seconds: float, severity: Severity) -> None:
    """A prepared transaction that has touched Rota's tables is named at once: jobs depend on it."""
    left = given.holder(
        kind="prepared", pid=None, name="g", state="prepared", seconds=seconds, touches=("lease_0",)
    )
    found = given.only(given.postgres(holders=(left,)))
    assert found.severity is severity
    assert "jobs that it completes stay running" in found.detail
    assert found.advice == "ROLLBACK PREPARED 'g';"


def test_slots() -> None:
    """A slot without a reader is named at once; the more it keeps, the worse."""
    slot = {
        "kind": "slot",
        "pid": None,
        "name": "old_standby",
        "seconds": None,
        "state": "physical",
    }
    unread = given.only(given.postgres(holders=(given.holder(**slot, active=False),)))
    assert unread.severity is NOTE
    assert "slot old_standby, which has no reader, holds back vacuum" in unread.title
    assert "pg_drop_replication_slot('old_standby')" in unread.advice
    large = given.holder(**slot, active=False, kept_log=2 * 1024**3)
    assert given.only(given.postgres(holders=(large,))).severity is WARNING
    read = given.holder(**slot, active=True, kept_log=2 * 1024**3)
    assert given.wrong(given.postgres(holders=(read,))) == []
    catalogs = {"age": None, "catalog_age": 2_000_000}
    logical = given.only(given.postgres(holders=(given.holder(**slot | catalogs, active=True),)))
    assert logical.severity is WARNING
    assert "Rota is not affected" in logical.detail


def test_a_standby() -> None:
    """A standby's feedback is no session: it cannot be ended here."""
    feedback = given.holder(kind="standby", name="walreceiver", seconds=None, age=1_000_000)
    found = given.only(given.postgres(holders=(feedback,)))
    assert "Standby walreceiver" in found.title
    assert "hot_standby_feedback" in found.advice


def test_the_oldest_comes_first() -> None:
    """Holders of the same severity are ordered by age; a few are shown, the others counted."""
    holders = tuple(given.holder(pid=n, seconds=1000.0 + n) for n in range(10))
    found = given.wrong(given.postgres(holders=holders))
    assert [found.title.split()[1] for found in found[: horizon.SHOWN]] == ["9", "8", "7", "6"]
    assert found[-1].title == "and 6 more holders of old snapshots"


def test_what_may_not_be_seen() -> None:
    """A role that does not see other roles' sessions learns which right it lacks."""
    found = given.only(given.postgres({"sees_all": False}))
    assert found.severity is NOTE
    assert found.advice == 'GRANT pg_read_all_stats TO "rota";'


def test_rights() -> None:
    """A few rights and tables are named, and the statements that grant them."""
    lacks = (
        MissingRights("schema", "rota", ("USAGE",)),
        *(MissingRights("table", f"log_{n}", ("DELETE", "TRUNCATE")) for n in range(6)),
    )
    found = given.only(given.postgres(rights=lacks))
    assert found.severity is WARNING
    assert "USAGE on schema rota; DELETE, TRUNCATE on table log_0" in found.detail
    assert "log_3 and 2 more." in found.detail
    assert found.advice.startswith('GRANT USAGE ON SCHEMA rota TO "rota"; GRANT SELECT, INSERT')
    assert (
        given.wrong(given.postgres(rights=lacks, unseen={"rights": "denied"}))[0].subject
        != "rights"
    )
    bare = given.wrong(given.postgres(rights=lacks, work=given.work(schema=0)))
    assert [found.subject for found in bare] == ["schema"]


# Locks --------------------------------------------------------------------------------------------


def test_waits() -> None:
    """The session in front is named, not those that wait themselves."""
    waits = (WaitFacts(11, "rota", 70.0, (10,)), WaitFacts(12, "rota", 8.0, (11, 10)))
    found = given.only(given.postgres(waits=waits))
    assert found.severity is CRITICAL
    assert "In front: session 10." in found.detail
    assert found.advice == "SELECT pg_terminate_backend(10);"
    alone = given.only(given.postgres(waits=waits[1:]))
    assert (alone.severity, alone.title.split(", ")[0]) == (
        WARNING, "1 session using Rota's tables waits for locks"
    )  # fmt: skip
    assert given.wrong(given.postgres(waits=(WaitFacts(12, "rota", 0.1, (10,)),))) == []


def test_waiting_for_a_prepared_transaction() -> None:
    """Where no session is in front, the step lists prepared transactions."""
    found = given.only(given.postgres(waits=(WaitFacts(11, "rota", 8.0, (0,)),)))
    assert "a prepared transaction" in found.detail
    assert "pg_prepared_xacts" in found.advice


# Space and rows -----------------------------------------------------------------------------------


def full(**changes: Any) -> Any:
    """A log with all segments in use, and the current segment far too large."""
    log = [given.table(f"log_{n}", size=33 * MIB, unclaimed=False) for n in range(1, 4)]
    current = given.table("log_0", size=65 * MIB, total=130 * MIB)
    return given.postgres(**{"tables": (current, *log)} | changes)


def test_space_that_is_not_freed() -> None:
    """The finding says why: a lock, a missing worker, a backlog, or many long jobs."""
    touching = given.holder(seconds=1.0, touches=("log_2",))
    by_lock = given.only(full(holders=(touching,)))
    assert by_lock.severity is WARNING
    assert "has not freed space for rota.log" in by_lock.title
    assert "130 MB" in by_lock.title
    assert "Session 4711 has locked log_2" in by_lock.detail
    assert by_lock.advice == "SELECT pg_terminate_backend(4711);"
    alone = given.wrong(full(work=given.work(sessions=())))
    assert any("Workers remove old rows, but none is alive" in found.detail for found in alone)
    assert "still running" in given.only(full()).detail
    waiting = tuple(given.table(f"log_{n}", size=65 * MIB, unclaimed=True) for n in range(4))
    backlog = given.only(full(tables=waiting))
    assert (backlog.severity, "a backlog" in backlog.detail) == (NOTE, True)


def test_space_that_is_freed() -> None:
    """With an empty segment, or a small current segment, all is in order."""
    one_empty = (
        given.table("log_0", size=65 * MIB),
        *(given.table(f"log_{n}", size=33 * MIB) for n in (1, 2)),
        given.table("log_3"),
    )
    small = tuple(given.table(f"log_{n}", size=33 * MIB) for n in range(4))
    assert given.wrong(given.postgres(tables=one_empty)) == []
    assert given.wrong(given.postgres(tables=small)) == []


def test_a_new_ring() -> None:
    """Rings come from the catalog; a new ring is judged like the others."""
    tally = tuple(given.table(f"tally_{n}", size=100 * MIB) for n in range(2))
    assert "freed space for rota.tally" in given.only(given.postgres(tables=tally)).title


def test_dead_rows() -> None:
    """Many dead rows are named, with the reason that vacuum leaves them."""
    tables = (given.table("lease", dead_rows=100_000, total=50 * MIB),)
    found = given.only(given.postgres(tables=tables))
    assert found.title == "rota.lease has 100,000 dead rows in 50 MB"
    assert "Autovacuum" in found.detail
    young = given.holder(seconds=10.0)
    assert "old snapshot" in given.only(given.postgres(tables=tables, holders=(young,))).detail


# Workers, queues, timers --------------------------------------------------------------------------


def test_a_dead_worker() -> None:
    """A dead worker is critical, unless its jobs are just being taken over."""
    dead = given.session(silent=300.0, leased=17, worker="web2:1")
    found = next(
        found
        for found in given.wrong(given.postgres(work=given.work(sessions=(dead,))))
        if found.subject == "sessions"
    )
    assert found.severity is CRITICAL
    assert "web2:1 has been silent for 5 min and still holds 17 jobs" in found.title
    assert "no other worker" in found.detail
    both = given.only(given.postgres(work=given.work(sessions=(given.session(), dead))))
    assert "Other workers are alive but do not" in both.detail
    fresh = given.session(silent=20.0)
    found = given.only(given.postgres(work=given.work(sessions=(given.session(), fresh))))
    assert found.severity is NOTE
    assert "other workers take over its 3 jobs within seconds" in found.detail
    empty = given.session(silent=300.0, leased=0)
    found = given.only(given.postgres(work=given.work(sessions=(given.session(), empty))))
    assert found.severity is NOTE


@pytest.mark.parametrize("silent", [17.0, 300.0])
def test_others_get_the_time_they_need(silent: float) -> None:
    """Workers that have just started, or just learnt of the jobs, are not blamed."""
    dead = given.session(silent=silent, leased=17)
    young = given.session(open=2.0)
    found = given.only(given.postgres(work=given.work(sessions=(young, dead))))
    assert found.severity is NOTE
    assert "other workers take over its 17 jobs within seconds" in found.detail
    grown = given.session(open=16.0)
    found = given.only(given.postgres(work=given.work(sessions=(young, grown, dead))))
    assert ("do not take over its jobs" in found.detail) is (silent > 30)


def test_a_dead_worker_and_no_other() -> None:
    """Without another worker the finding does not promise that jobs are taken over."""
    dead = given.session(silent=17.0, leased=1)
    wrong = given.wrong(given.postgres(work=given.work(sessions=(dead,))))
    [found] = [finding for finding in wrong if finding.subject == "sessions"]
    assert (found.severity, found.advice) == (NOTE, "rota worker MODULE:APP")
    assert "still holds 1 job" in found.title
    assert "There is no other worker" in found.detail


def test_a_long_job() -> None:
    """A living worker that holds a job for hours is named as a note."""
    found = given.only(given.postgres(work=given.work(sessions=(given.session(oldest_lease=9e4),))))
    assert found.severity is NOTE
    assert "held a job for 1 d 1 h" in found.title


def test_many_keys() -> None:
    """Only queues with too many keys are named."""
    keys = (("mail", 9_999), ("orders", 250_000))
    found = given.only(given.postgres(work=given.work(keys=keys)))
    assert (found.severity, found.subject) == (Severity.WARNING, "keys")
    assert "orders" in found.title
    assert "250,000" in found.title


@pytest.mark.parametrize(
    ("jobs", "severity"), [(1, NOTE), (4, NOTE), (5, WARNING)]
)  # fmt: skip
def test_rescued(jobs: int, severity: Severity) -> None:
    """Several jobs of a task that lost their worker are a warning."""
    rescued = (RescueFacts("shop.render", jobs, 60.0, JobId(17)),)
    found = given.only(given.postgres(work=given.work(rescued=rescued)))
    assert found.severity is severity
    several = "rota jobs list --task shop.render"
    assert found.advice == ("rota jobs show 17" if jobs == 1 else several)
    assert ("1 job of shop.render lost its worker" in found.title) is (jobs == 1)
    assert ("kill its worker?" in found.detail) is (jobs == 1)


@pytest.mark.parametrize(
    ("queues", "titles"),
    [
        (("*",), []),
        (("video-*",), []),
        (("mail", "v"), ["No worker takes jobs from queue video-a"]),
    ],
)
def test_queues_that_a_pattern_means(queues: tuple[str, ...], titles: list[str]) -> None:
    """A queue has a worker where a pattern of a living worker means it."""
    lanes = (given.lane(queue="video-a", oldest=31.0),)
    sessions = (given.session(queues=queues),)
    found = given.wrong(given.postgres(work=given.work(lanes=lanes, sessions=sessions)))
    assert [one.title for one in found] == titles


@pytest.mark.parametrize(
    ("changes", "severity", "title"),
    [
        ({"oldest": 299.0}, OK, ""),
        ({"oldest": 301.0}, WARNING, "Queue mail is behind"),
        ({"oldest": 0.1, "queue": "video"}, NOTE, "No worker takes jobs from queue video"),
        ({"oldest": 29.0, "queue": "video"}, NOTE, "No worker takes jobs from queue video"),
        ({"oldest": 31.0, "queue": "video"}, WARNING, "No worker takes jobs from queue video"),
        ({"oldest": 601.0, "queue": "video"}, CRITICAL, "No worker takes jobs from queue video"),
        ({"oldest": 1.0, "paused": True}, NOTE, "Queue mail is paused"),
        ({"oldest": 3601.0, "paused": True}, WARNING, "Queue mail is paused"),
        ({"oldest": None, "paused": True}, OK, ""),
    ],
)
def test_queues(changes: dict[str, Any], severity: Severity, title: str) -> None:
    """A queue is judged by its oldest job, by whether it has a worker, and by its pause."""
    found = given.wrong(given.postgres(work=given.work(lanes=(given.lane(**changes),))))
    assert worst(found) is severity
    assert [found.title[: len(title)] for found in found] == ([title] if title else [])


def test_the_worst_priority_counts() -> None:
    """Of a queue's priorities the one with the longest wait is shown."""
    lanes = (given.lane(oldest=400.0), given.lane(priority=9, oldest=4000.0))
    assert "priority 9" in given.only(given.postgres(work=given.work(lanes=lanes))).detail


@pytest.mark.parametrize(
    ("overdue", "severity"), [(9.0, OK), (11.0, WARNING), (301.0, CRITICAL)]
)  # fmt: skip
def test_timers(overdue: float, severity: Severity) -> None:
    """Jobs that should long have been staged."""
    assert worst(given.wrong(given.postgres(work=given.work(overdue=overdue)))) is severity


def test_no_worker() -> None:
    """Without a worker an empty queue is a note, and a queue with jobs a warning."""
    idle = given.work(sessions=())
    assert given.only(given.postgres(work=idle)).severity is NOTE
    busy = given.work(sessions=(), lanes=(given.lane(oldest=1.0),))
    first, second = given.wrong(given.postgres(work=busy))
    assert (first.severity, first.title) == (WARNING, "No worker is alive")
    assert (second.severity, second.title) == (NOTE, "No worker takes jobs from queue mail")


def test_unseen_is_not_judged() -> None:
    """Where workers or queues cannot be seen, no missing worker is reported."""
    unseen = {"sessions": "permission denied for table session", "queues": "permission denied"}
    facts = given.postgres(work=given.work(sessions=(), overdue=None), unseen=unseen)
    found = given.wrong(facts)
    assert {found.subject for found in found} == {"unseen"}
    assert all("GRANT" in found.advice for found in found)
    late = given.postgres(unseen={"waits": "canceling statement due to statement timeout"})
    assert given.only(late).severity is WARNING


# The server, its settings, the schema -------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "severity", "words"),
    [
        ({"ahead": -6.0}, WARNING, "6 s behind"),
        ({"ahead": 6.0, "round_trip": 3.0}, OK, ""),
        ({"standby": True}, CRITICAL, "standby"),
        ({"version": 130010, "version_text": "13.10"}, CRITICAL, "too old"),
        ({"version": 190000, "version_text": "19.0"}, NOTE, "newer"),
        ({"connections": 87}, OK, ""),
        ({"connections": 88}, WARNING, "88 of 97 connections"),
        ({"notifications": 0.5}, WARNING, "50% full"),
        ({"notifications": 0.9}, CRITICAL, "90% full"),
        ({"frozen_age": 1_000_000_000}, WARNING, "unfrozen"),
        ({"frozen_age": 1_800_000_000}, CRITICAL, "unfrozen"),
    ],
)
def test_server(changes: dict[str, Any], severity: Severity, words: str) -> None:
    """The server itself."""
    found = given.wrong(given.postgres(changes))
    assert worst(found) is severity
    assert all(words in found.title for found in found)


@pytest.mark.parametrize(
    ("hears", "severity"), [(True, OK), (False, WARNING), (None, NOTE)]
)  # fmt: skip
def test_notify(hears: bool | None, severity: Severity) -> None:  # noqa: FBT001 - a fact
    """Swallowed notifications are a warning; a URL that names its pooler is not."""
    assert worst(given.wrong(given.postgres(), hears=hears)) is severity


@pytest.mark.parametrize(
    ("setting", "value", "severity"),
    [
        ("autovacuum", "off", WARNING),
        ("track_counts", "off", WARNING),
        ("fsync", "off", CRITICAL),
        ("full_page_writes", "off", WARNING),
        ("synchronous_commit", "off", WARNING),
        ("default_transaction_read_only", "on", CRITICAL),
        ("idle_in_transaction_session_timeout", "0", NOTE),
    ],
)
def test_settings(setting: str, value: str, severity: Severity) -> None:
    """Each setting that hurts is named, with the statement that changes it."""
    found = given.only(given.postgres(settings=given.SETTINGS | {setting: value}))
    assert found.severity is severity
    assert found.title.startswith(setting)
    assert found.advice.startswith(f"ALTER SYSTEM SET {setting} = ")


@pytest.mark.parametrize(
    ("schema", "oldest", "advice"),
    [(0, 0, "rota migrate"), (1, 0, "rota migrate"), (4, 3, "pip")],
)
def test_schema(schema: int, oldest: int, advice: str) -> None:
    """Missing and older tables are critical findings, and newer ones that this Rota cannot use."""
    work = given.work(schema=schema, newest=2, oldest_code=oldest)
    found = given.only(given.postgres(work=work))
    assert found.severity is CRITICAL
    assert found.advice.startswith(advice)


@pytest.mark.parametrize("oldest", [1, 2])
def test_newer_tables(oldest: int) -> None:
    """That they are newer is worth a note where this Rota works with them, not a task tonight."""
    work = given.work(schema=3, newest=2, oldest_code=oldest)
    found = given.only(given.postgres(work=work))
    assert (found.severity, found.subject) == (NOTE, "schema")
    assert "version 3; this Rota knows 2 and works with them" in found.title


def test_tables_without_a_version() -> None:
    """That a dump without data was restored is the only finding, and critical."""
    facts = given.postgres(work=given.work(schema=0), unseen={"version": "as after a dump"})
    found = given.only(facts)
    assert (found.severity, found.subject) == (CRITICAL, "schema")
    assert (found.detail, found.advice) == ("as after a dump", "rota migrate")


def test_a_restored_dump() -> None:
    """Tables of another cluster are named."""
    assert "restored" in given.only(given.postgres(foreign=True)).title


@pytest.mark.parametrize(
    ("replication", "severity", "step"),
    [
        (ReplicationFacts("publication", "all", all_tables=True), WARNING,
         'DROP PUBLICATION "all"; CREATE PUBLICATION "all" FOR TABLES IN SCHEMA public;'),
        (ReplicationFacts("publication", "p", all_tables=False, tables=("lease", "log")), WARNING,
         'ALTER PUBLICATION "p" DROP TABLE rota.lease, rota.log;'),
        (ReplicationFacts("publication", "p", all_tables=False), WARNING,
         'ALTER PUBLICATION "p" DROP TABLES IN SCHEMA rota;'),
        (ReplicationFacts("subscription", "s", all_tables=False), WARNING,
         'DROP SUBSCRIPTION "s";'),
    ],
)  # fmt: skip
def test_replication(replication: ReplicationFacts, severity: Severity, step: str) -> None:
    """Rota's tables in a publication or a subscription: what it means, and how to leave them out."""
    found = given.only(given.postgres(replication=(replication,)))
    assert (found.severity, found.subject, found.advice) == (severity, "replication", step)
    assert replication.name in found.title


# Words --------------------------------------------------------------------------------------------


def test_amounts() -> None:
    """Durations and sizes as people read them."""
    seconds = [0.0124, 1, 59.6, 61, 3600, 11_520, 90_000, None]
    assert [duration(found) for found in seconds] == [
        "12 ms", "1 s", "1 min", "1 min 1 s", "1 h", "3 h 12 min", "1 d 1 h", "an unknown time"
    ]  # fmt: skip
    assert [size(n) for n in (0, 1023, 1024, 15_360, 1536 * MIB, 5 * 1024**5)] == [
        "0 bytes", "1023 bytes", "1.0 kB", "15 kB", "1.5 GB", "5120 TB"
    ]  # fmt: skip


def test_few() -> None:
    """One finding above the limit is shown: a line that counts it would be no shorter."""
    three = [Finding(NOTE, "x", str(n)) for n in range(3)]
    assert few(three, 2, "things") == three
    four = [*three, Finding(WARNING, "x", "worst")]
    assert [found.title for found in few(four, 2, "things")] == ["worst", "0", "and 2 more things"]
