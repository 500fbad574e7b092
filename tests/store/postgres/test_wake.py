"""A notification reaches all sleepers, and one of them goes first."""

import re
import time
from contextlib import ExitStack, closing
from pathlib import Path

import rota.store.postgres
from rota.model.job import SessionInfo
from rota.worker.claim import goes_first
from rota.worker.session import Answer
from tests.store.postgres.database import Database

LONG = 60.0

FOLDER = Path(rota.store.postgres.__file__).parent
WAKE = """
    CASE WHEN %(wake)s::text IS NULL THEN false
         WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
         THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
         ELSE pg_notify('rota', concat_ws(' ', pg_current_xact_id(), %(wake)s)) IS NULL END
"""
CALLS = re.compile(r"pg_\w+\((?:7682001|'rota'), [^;]*?\)\)")


def test_the_wake_is_the_same_everywhere() -> None:
    """All statements that wake have one text for it, and `rota.enqueue()` makes the same calls."""
    told = {
        file: " ".join(file.read_text(encoding="utf-8").split()) for file in FOLDER.rglob("*.sql")
    }
    waking = {file: text for file, text in told.items() if "pg_try_advisory_lock(7682001" in text}
    statements = [text for file, text in waking.items() if file.is_relative_to(FOLDER / "sql")]
    functions = [text for text in waking.values() if text not in statements]
    wake = " ".join(WAKE.split())
    assert len(statements) > 1
    assert [text.count(wake) for text in statements] == [1] * len(statements)
    assert FOLDER / "schema.sql" in waking
    calls = CALLS.findall(wake.replace("%(wake)s", "enqueue.queue"))
    assert len(calls) == 3
    assert [CALLS.findall(text) for text in functions] == [calls] * len(functions)


def test_who_goes_first(db: Database) -> None:
    """All sleepers are told the same number; the first goes at once, the second a moment later, the others not."""
    asked: list[tuple[str, int]] = []

    with ExitStack() as stack:
        wakers = [stack.enter_context(closing(db.store.waker(["default"]))) for _ in range(3)]
        for waker in wakers:
            while waker.wait(0.0):
                pass
        db.enqueue(1)
        for waker, answer in zip(wakers, (Answer.FIRST, Answer.SECOND, Answer.NOT), strict=True):

            def answers(queue: str, number: int, given: Answer = answer) -> Answer:
                asked.append((queue, number))
                return given

            begun = time.monotonic()
            # The second one's time is up, as it were, long before it is.
            assert goes_first(waker, LONG if answer is not Answer.NOT else 0.5, answers) is (
                answer is Answer.FIRST
            )
            assert (time.monotonic() - begun >= 0.5) is (answer is Answer.NOT)
            assert not goes_first(waker, 0.0, answers)
    [(queue, number), *again] = asked
    assert again == [(queue, number)] * 2
    assert queue == "default"
    assert number == int(db.one("SELECT xid::text FROM rota.log"))


def test_whom_a_renewal_names(db: Database) -> None:
    """The sessions that serve the same queues, in one order for all."""
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
