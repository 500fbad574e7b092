"""The claim for light work: a simpler statement where the log has one segment and no holes."""

import pytest

from rota.errors import StoreError
from rota.model.states import State
from rota.store.operation import Statement
from rota.store.postgres import claim
from tests.store.factories import until
from tests.store.postgres.database import Database, ids

BROKEN = Statement("broken", "SELECT 1 / 0, %(lane)s, %(session)s, %(size)s")


@pytest.mark.parametrize("segment", [0, 3])
def test_in_a_trickle(db: Database, monkeypatch: pytest.MonkeyPatch, segment: int) -> None:
    """Once a claim knows the segment, nothing else is needed, however often it claims."""
    session = db.session()
    db.sql("SELECT setval('rota.log_turn', %s)", segment)
    monkeypatch.setattr(claim, "HEAVY", 0.0)
    db.enqueue(1)
    assert len(db.claim(session)) == 1

    def lightly() -> bool:
        [job] = db.enqueue(1)
        with monkeypatch.context() as only:
            only.setattr(claim, "CLAIM", BROKEN)
            try:
                return ids(db.claim(session)) == [job]
            except StoreError:
                pass
        # A transaction in another database of the server has left a hole, which another claim
        # closes.
        db.claim(session)
        return False

    until(lambda: lightly() or None)


def test_work_in_two_segments(db: Database) -> None:
    """Jobs of the segment that the ring has left come first, and none is passed over."""
    session = db.session()
    db.enqueue(1)
    db.claim(session)
    before = db.enqueue(2)
    db.sql("SELECT setval('rota.log_turn', 1)")
    after = db.enqueue(2)
    assert ids(db.claim(session, 3)) == [*before, after[0]]
    assert ids(db.claim(session, 3)) == after[1:]


def test_a_job_that_commits_late(db: Database) -> None:
    """The cursor of such a claim has holes, too."""
    session = db.session()
    late = db.bare()
    job = db.enqueue(1, conn=late)
    others = db.enqueue(2)
    assert ids(db.claim(session, 1)) == others[:1]
    assert ids(db.claim(session, 1)) == others[1:]
    late.commit()
    assert ids(db.claim(session)) == job


@pytest.mark.parametrize("light", [True, False])
def test_what_was_claimed_is_counted(db: Database, *, light: bool) -> None:
    """By either statement."""
    if not light:
        db.try_no_light_claims()
    session = db.session()
    db.enqueue(5)
    for _ in range(2):
        db.claim(session, 2)
    [queue] = db.own.run(db.store.queues())
    assert (queue.counts[State.AVAILABLE], queue.counts[State.RUNNING]) == (1, 4)
