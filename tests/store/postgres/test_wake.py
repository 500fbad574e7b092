"""A notification reaches all sleepers, and one of them goes first."""

from contextlib import ExitStack, closing

from rota.model.job import SessionInfo
from tests.store.postgres.database import Database

LONG = 60.0


def test_who_goes_first(db: Database) -> None:
    """All sleepers are told the same number, and who does not go first looks a moment later."""
    asked: list[tuple[str, int]] = []

    def turn(queue: str, number: int) -> bool:
        asked.append((queue, number))
        return False

    with ExitStack() as stack:
        wakers = [stack.enter_context(closing(db.store.waker(["default"]))) for _ in range(2)]
        for waker in wakers:
            while waker.wait(0.0):
                pass
        db.enqueue(1)
        # As if the time were up, but long before it is.
        assert [waker.wait(LONG, turn) for waker in wakers] == [False, False]
        assert not any(waker.wait(0.0, turn) for waker in wakers)
    [(queue, number), again] = asked
    assert (queue, number) == again
    assert queue == "default"
    assert number == int(db.one("SELECT xid::text FROM rota.log"))


def test_whom_a_renewal_names(db: Database) -> None:
    """Those who serve the same queues, in one order for all."""
    first, second, third = (
        db.own.run(db.store.open_session(SessionInfo("a", 1, queues, LONG)))
        for queues in (("mail", "web"), ("mail",), ("other",))
    )
    assert db.own.run(db.store.renew(first)).serving == {"mail": [first, second], "web": [first]}
    assert db.own.run(db.store.renew(second)).serving == {"mail": [first, second]}
    assert db.own.run(db.store.renew(third)).serving == {"other": [third]}


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
