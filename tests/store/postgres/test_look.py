"""The one statement of an idle worker: what it sees of transactions and rings."""

import pytest

from rota.model.look import Look
from rota.store.postgres import rings
from rota.store.postgres.look import LOOK
from rota.store.postgres.stage import DUE as DUE_STATEMENT
from tests.store.factories import DUE
from tests.store.keying import limited
from tests.store.postgres.database import KEEP, Database


def look(db: Database) -> Look:
    return db.own.run(db.store.look(["default"]))


def test_a_quiet_database_asks_for_nothing(db: Database) -> None:
    """A worker that is alone and idle has no housekeeping to do."""
    db.session()
    quiet = Look(available=False, due=None, silent=False, untidy=False)
    assert look(db)._replace(clock=None, unwatched=False, unrecorded=False) == quiet


def test_a_late_transaction_is_seen_behind_the_cursor(db: Database) -> None:
    """A job in a hole is available as soon as its transaction has committed."""
    session = db.session()
    late = db.bare()
    db.enqueue(conn=late)
    db.enqueue()
    db.claim(session)
    assert not look(db).available
    late.commit()
    assert look(db).available


def test_jobs_in_any_segment_are_seen(db: Database) -> None:
    """Whichever is the current one, and wherever the last look found the work."""
    session = db.session()
    for segment in (1, 2, 3, 4):
        db.sql("SELECT setval('rota.log_turn', %s)", segment)
        db.enqueue()
        assert look(db).available
        assert db.claim(session)
        assert not look(db).available
    db.enqueue()
    db.sql("SELECT setval('rota.log_turn', 5)")
    assert look(db).available


def test_jobs_of_a_key_lane_are_seen(db: Database) -> None:
    """With a limit, for instance; as long as it lets them run."""
    limited(db.store, db.own, "ab")
    assert look(db).available
    db.claim_all(db.session())
    assert not look(db).available


def test_what_is_due_is_asked_for_in_the_same_words() -> None:
    """Alone, and in the statement of a look."""
    for light in LOOK:
        assert " ".join(DUE_STATEMENT.text.split()) in " ".join(light.text.split())


def test_what_is_untidy_is_told_on_request(db: Database) -> None:
    """It means a look at many files."""
    [job] = db.enqueue()
    db.sql("INSERT INTO rota.cancel_request (job) VALUES (%s)", job)
    assert look(db).untidy
    assert not db.own.run(db.store.look(["default"], untidy=False)).untidy


def test_a_late_timer_is_seen_behind_the_mark(db: Database) -> None:
    """A timer that is committed after later ones were staged asks for a staging."""
    late = db.bare()
    db.enqueue(conn=late, delay=DUE)
    db.enqueue(delay=-60.0)
    db.own.run(db.store.stage(10))
    assert look(db).due is None
    late.commit()
    assert look(db).due == 0
    assert db.own.run(db.store.stage(10)).staged == 1
    assert look(db).due is None


def test_a_large_segment_and_one_to_be_emptied_are_untidy(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is to be turned when it is large, and the segment that was left to be emptied."""
    session = db.session()
    db.enqueue()
    assert not look(db).untidy
    with monkeypatch.context() as patched:
        patched.setattr(rings, "LOG_SIZE", 1)
        assert look(db).untidy
    db.sql("SELECT setval('rota.log_turn', 1)")
    assert look(db).untidy
    db.claim(session)
    for _ in range(2):
        db.own.run(db.store.tidy())
    assert not look(db).untidy


@pytest.mark.parametrize("ring", ["CURSOR_SIZE", "LEASE_SIZE", "TALLY_SIZE"])
def test_the_small_rings_are_looked_at(
    db: Database, monkeypatch: pytest.MonkeyPatch, ring: str
) -> None:
    """A table that is large is to be left, and one that was left is to be emptied."""
    session = db.session()
    db.enqueue()
    db.settle(session, db.claim(session), keep=KEEP)
    assert not look(db).untidy
    with monkeypatch.context() as patched:
        patched.setattr(rings, ring, 1)
        assert look(db).untidy
        db.own.run(rings.turn_slots())
    assert look(db).untidy
    for _ in range(2):
        db.own.run(db.store.tidy())
    assert not look(db).untidy


def test_a_request_to_cancel_is_untidy(db: Database) -> None:
    """Whether its job still runs is for the housekeeping to find out."""
    [job] = db.enqueue()
    db.claim(db.session())
    db.own.run(db.store.cancel([job]))
    assert look(db).untidy


def test_a_request_to_cancel_that_was_overtaken(db: Database) -> None:
    """Its job waits again: the housekeeping cancels it, and the request is forgotten."""
    [job] = db.enqueue()
    db.sql("INSERT INTO rota.cancel_request (job) VALUES (%s)", job)
    assert look(db).untidy
    db.own.run(db.store.tidy())
    assert db.one("SELECT state FROM rota.job WHERE id = %s", job) == "cancelled"
    assert not look(db).untidy
