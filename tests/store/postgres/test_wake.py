"""A notification reaches all sleepers that listen, and one of them has the watch."""

import re
import select
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import rota.store.postgres
from rota.model.job import SessionInfo
from rota.store.connections import Wake, Waker
from rota.store.postgres import wake
from rota.store.postgres.connection import PostgresConnection
from rota.store.postgres.store import PostgresStore
from rota.store.postgres.wake import PostgresWaker
from rota.worker.claim import goes_first
from tests.fixtures.proxy import Proxy
from tests.store.factories import until
from tests.store.postgres.database import Database, Raw

LONG = 60.0

FOLDER = Path(rota.store.postgres.__file__).parent
WAKE = """
    CASE WHEN %(wake)s::text IS NULL THEN false
         WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
         THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
         ELSE pg_notify('rota', concat_ws(' ', pg_current_xact_id(), %(wake)s)) IS NULL END
"""
WAKE_AT_ONCE = WAKE.replace(
    "concat_ws(' ', pg_current_xact_id(),", "concat('+', pg_current_xact_id(), ' ',"
)
"""The same where the jobs are available, so that no worker needs to look at timers."""
AT_ONCE = {"enqueue.sql", "enqueue_many.sql", "enqueue_here.sql", "keyed_now.sql", "links.sql"}
BY_COLUMN = {"links.sql"}
"""They wake for queues that they find themselves."""
CALLS = re.compile(r"pg_\w+\((?:7682001|'rota'), [^;]*?\)\)")


def test_the_wake_is_the_same_everywhere() -> None:
    """All statements that wake share one of two texts; `rota.enqueue()` makes the same calls."""
    told = {
        file: " ".join(file.read_text(encoding="utf-8").split()) for file in FOLDER.rglob("*.sql")
    }
    waking = {file: text for file, text in told.items() if "pg_try_advisory_lock(7682001" in text}
    statements = {
        file: text for file, text in waking.items() if file.is_relative_to(FOLDER / "sql")
    }
    functions = [text for file, text in waking.items() if file not in statements]
    text_of_wake = " ".join(WAKE.split())
    assert {file.name for file in statements} > AT_ONCE
    for file, text in statements.items():
        own = WAKE_AT_ONCE if file.name in AT_ONCE else WAKE
        if file.name in BY_COLUMN:
            own = own.replace("%(wake)s::text", "wake").replace("%(wake)s", "wake")
        assert text.count(" ".join(own.split())) == 1, file
    assert FOLDER / "schema.sql" in waking
    calls = CALLS.findall(text_of_wake.replace("%(wake)s", "enqueue.queue"))
    assert len(calls) == 3
    assert [CALLS.findall(text) for text in functions] == [calls] * len(functions)


@pytest.fixture
def wakers(db: Database) -> Iterator[list[PostgresWaker]]:
    """Three of one group, all asleep; the first has the watch."""
    with ExitStack() as stack:
        wakers = [stack.enter_context(closing(db.store.waker(["default"]))) for _ in range(3)]
        fall_asleep(wakers)
        yield wakers


def told(*, mine: bool = True) -> Wake:
    """What a worker hears of jobs that are available."""
    return Wake("default", mine, timed=False)


def fall_asleep(wakers: Iterable[Waker]) -> None:
    """Let them all listen, and forget what they have heard."""
    for waker in wakers:
        while waker.wait(0.0):
            pass


def test_one_of_all_is_to_claim(db: Database, wakers: list[PostgresWaker]) -> None:
    """A notification reaches all, and says to one of them that the job is its own."""
    for count in (1, 2):
        db.enqueue(count)
        assert [waker.wait(LONG) for waker in wakers] == [
            [told(mine=mine)] for mine in (True, False, False)
        ]


def test_each_group_has_its_own(db: Database, wakers: list[PostgresWaker]) -> None:
    """Workers of other queues do not rely on these, even where they share a queue."""
    others = [["default", "mail"], ["mail", "default"], ["def*"]]
    with ExitStack() as stack:
        asked = [stack.enter_context(closing(db.store.waker(queues))) for queues in others]
        fall_asleep(asked)
        db.enqueue(1)
        mine = [waker.wait(LONG)[0].mine for waker in (*wakers, *asked)]
    assert mine == [True, False, False, True, False, True]


def test_each_set_of_tasks_has_its_own(db: Database, wakers: list[PostgresWaker]) -> None:
    """A job of a task that some workers do not know must wake one that does."""
    with closing(db.store.waker(["default"], ["shop.send", "shop.bill"])) as waker:
        fall_asleep([waker])
        db.enqueue(1)
        assert [one.wait(LONG)[0].mine for one in (wakers[0], waker)] == [True, True]
        assert not db.own.run(
            db.store.look(["default"], tasks=["shop.bill", "shop.send"])
        ).unwatched
    assert db.own.run(db.store.look(["default"], tasks=["shop.bill"])).unwatched


def test_the_watch_is_handed_on(db: Database, wakers: list[PostgresWaker]) -> None:
    """A worker with work in plenty wakes another, until all have; then producers notify no more."""
    left = list(wakers)
    while left:
        assert left[0].busy()
        left = left[1:]
        woken = [waker.wait(0.3) for waker in left]
        assert woken == [[Wake()], *([] for _ in left[1:])][: len(left)]
    assert db.own.run(db.store.look(["default"])).unwatched
    fall_asleep(wakers[1:2])
    assert not db.own.run(db.store.look(["default"])).unwatched
    db.enqueue(1)
    assert wakers[1].wait(LONG) == [told()]


def test_the_watch_ends_without_a_word(db: Database, wakers: list[PostgresWaker]) -> None:
    """Then a look says so, and the next worker that is woken takes it."""
    assert not db.own.run(db.store.look(["default"])).unwatched
    wakers[0].close()
    until(lambda: db.own.run(db.store.look(["default"])).unwatched)
    assert db.own.run(db.store.look(["default", "mail"])).unwatched
    wakers[1].wake()
    assert wakers[1].wait(LONG) == [Wake()]
    fall_asleep(wakers[1:2])
    assert not db.own.run(db.store.look(["default"])).unwatched
    db.enqueue(1)
    assert wakers[1].wait(LONG) == [told()]
    assert wakers[2].wait(LONG) == [told(mine=False)]


def test_a_frozen_worker_keeps_no_watch(db: Database, wakers: list[PostgresWaker]) -> None:
    """The rescue of its session ends it, and leaves the connections of the living alone."""
    dead, living = db.session(), db.session()
    wakers[0].belong(dead)
    wakers[1].belong(living)
    # The first has given the watch up for a moment, to take it as that session.
    fall_asleep(wakers[:2])
    assert db.own.run(db.store.rescue()) == []
    assert not db.own.run(db.store.look(["default"])).unwatched
    db.silence(dead)
    assert [rescue.session for rescue in db.own.run(db.store.rescue())] == [dead]
    until(lambda: db.own.run(db.store.look(["default"])).unwatched or None)
    wakers[1].wake()
    wakers[1].wait(LONG)
    fall_asleep(wakers[1:2])
    db.enqueue(1)
    assert wakers[1].wait(LONG) == [told()]


def test_a_worker_that_hears_for_nothing(
    db: Database, wakers: list[PostgresWaker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a few jobs of others it listens no more for a while; the one with the watch always does."""
    monkeypatch.setattr(wake, "DEAF", 0.5)
    monkeypatch.setattr(wake, "RETRY", 0.1)
    monkeypatch.setattr(wake, "WITHIN", LONG)
    for number in range(2 * wake.FOR_NOTHING):
        db.enqueue(1)
        assert wakers[0].wait(LONG) == [told()]
        if number < wake.FOR_NOTHING:
            assert wakers[1].wait(LONG) == [told(mine=False)]
    assert wakers[1].wait(0.0) == []
    assert [listens(waker) for waker in wakers[:2]] == [True, False]
    since = time.monotonic()
    wakers[1].wait(0.8)
    assert listens(wakers[1])
    assert time.monotonic() - since >= 0.5
    db.enqueue(1)
    assert wakers[1].wait(LONG) == [told(mine=False)]


def test_a_worker_that_hears_for_nothing_now_and_then(
    db: Database, wakers: list[PostgresWaker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where jobs are rare it goes on listening, which costs less than to try for the watch."""
    monkeypatch.setattr(wake, "WITHIN", 0.0)
    for _ in range(2 * wake.FOR_NOTHING):
        db.enqueue(1)
        assert wakers[1].wait(LONG) == [told(mine=False)]
    assert wakers[1].wait(0.0) == []
    assert listens(wakers[1])


def test_a_deaf_worker_takes_the_watch(
    db: Database, wakers: list[PostgresWaker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It missed that the watch was handed on, finds it free when it tries, and listens again."""
    monkeypatch.setattr(wake, "DEAF", 10 * LONG)
    monkeypatch.setattr(wake, "RETRY", 0.1)
    monkeypatch.setattr(wake, "WITHIN", LONG)
    for _ in range(wake.FOR_NOTHING):
        db.enqueue(1)
        wakers[1].wait(LONG)
    wakers[1].wait(0.0)
    assert not listens(wakers[1])
    wakers[0].busy()
    assert wakers[1].wait(LONG) == [Wake()]
    db.enqueue(1)
    assert wakers[1].wait(LONG) == [told()]


def test_a_connection_that_is_lost_meanwhile(db: Database, wakers: list[PostgresWaker]) -> None:
    """What was said on it is void: the worker looks, and listens on another one."""
    [waker] = wakers[1:2]
    raw = waker.connection.raw()
    db.sql("SELECT pg_terminate_backend(%s)", raw.info.backend_pid)
    until(lambda: select.select([raw.fileno()], [], [], 0)[0] or None)
    time.sleep(0.2)  # the server's last words come before the end
    waker._tried_at = 0.0
    assert waker.wait(LONG) == [Wake()]
    fall_asleep([waker])
    assert listens(waker)


def test_the_database_goes_while_it_hears_no_more(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that wants to listen again, and cannot, waits for its next look."""
    asked: list[float] = []
    connect = PostgresConnection.raw

    def raw(connection: PostgresConnection) -> Raw:
        asked.append(time.monotonic())
        return connect(connection)

    monkeypatch.setattr(wake, "DEAF", 0.05)
    monkeypatch.setattr(wake, "RETRY", 0.05)
    monkeypatch.setattr(wake, "WITHIN", LONG)
    with (
        Proxy(db.url) as proxy,
        closing(PostgresStore(proxy.url)) as store,
        closing(db.store.waker(["default"])) as first,
        closing(store.waker(["default"])) as second,
    ):
        fall_asleep([first, second])
        for _ in range(wake.FOR_NOTHING):
            db.enqueue(1)
            second.wait(LONG)
        second.wait(0.0)
        proxy.refuses = True
        proxy.cut()
        monkeypatch.setattr(PostgresConnection, "raw", raw)
        assert second.wait(0.5) == []
    assert len(asked) < 10


def test_only_what_may_be_early_is_looked_for_among_timers(
    db: Database, wakers: list[PostgresWaker]
) -> None:
    """A job that is available says so; a delayed one does not, nor one from SQL, which may be either."""
    db.enqueue(1)
    assert wakers[0].wait(LONG) == [Wake("default", timed=False)]
    db.enqueue(1, delay=60.0)
    assert wakers[0].wait(LONG) == [Wake("default", timed=True)]
    db.sql("SELECT rota.enqueue('shop.send')")
    assert wakers[0].wait(LONG) == [Wake("default", timed=True)]


def listens(waker: PostgresWaker) -> bool:
    """Whether the server signals its connection."""
    return bool(waker.connection.raw().execute("SELECT pg_listening_channels()").fetchall())


def test_who_claims(db: Database, wakers: list[PostgresWaker]) -> None:
    """The one with the watch at once; one that stands by a moment later; the others not."""
    db.enqueue(1)
    for waker, stands_by, claims, soon in (
        (wakers[0], False, True, True),
        (wakers[1], True, False, True),
        (wakers[2], False, False, False),
    ):
        begun = time.monotonic()
        woken = goes_first(waker, LONG if soon else 0.5, lambda _, by=stands_by: by)  # type: ignore[misc]
        assert bool(woken) is claims
        assert (time.monotonic() - begun < 0.5) is soon
        assert not goes_first(waker, 0.0, lambda _: True)


def test_whom_a_renewal_names(db: Database) -> None:
    """The sessions that serve the same queues with the same tasks, in one order for all."""
    first, second, third = (
        db.own.run(db.store.open_session(SessionInfo("a", 1, queues, LONG)))
        for queues in (("mail", "web"), ("mail",), ("other",))
    )
    assert db.own.run(db.store.renew(first)).serving == {"mail": [first, second], "web": [first]}
    assert db.own.run(db.store.renew(second)).serving == {"mail": [first, second]}
    assert db.own.run(db.store.renew(third)).serving == {"other": [third]}
    fourth = db.own.run(db.store.open_session(SessionInfo("a", 1, ("other",), LONG, ("send",))))
    assert db.own.run(db.store.renew(fourth)).serving == {"other": [fourth]}


def test_a_renewal_names_no_silent_session(db: Database) -> None:
    """Long before it can be rescued, and from its next sign of life on again."""
    first, second = (
        db.own.run(db.store.open_session(SessionInfo("a", 1, ("mail",), 1000.0))) for _ in range(2)
    )

    def named() -> list[int]:
        return [*db.own.run(db.store.renew(first)).serving["mail"]]

    for silent, others in ((0, [first, second]), (550, [first, second]), (650, [first])):
        db.sql("UPDATE rota.heartbeat SET at = now() - make_interval(secs => %s)", silent)
        assert named() == others
    assert db.own.run(db.store.renew(second)).alive
    assert named() == [first, second]


def test_nobody_is_notified_where_nobody_sleeps(db: Database) -> None:
    """Notifications make commits take turns, so one is sent only if it may wake somebody."""
    listener = db.bare(autocommit=True)
    listener.execute("LISTEN rota")

    def heard() -> int:
        db.sql("SELECT pg_notify('rota', 'the end')")
        payloads = iter(notice.payload for notice in listener.notifies(timeout=LONG))
        return sum(1 for _ in iter(lambda: next(payloads), "the end"))

    for count in (1, 1, 2, 300):
        db.enqueue(count)
    db.enqueue(1, delay=LONG)
    assert heard() == 0
    with closing(db.store.waker(["default"])) as waker:
        while waker.wait(0.0):
            pass
        for count in (1, 1, 2, 300):
            db.enqueue(count)
        db.enqueue(1, delay=LONG)
        assert heard() == 5
