"""The server's clock is set: what lies in the database is then from the future, or from long ago."""

import pytest

from rota.model.states import Move, State
from rota.store.postgres import clearing, counters, rings
from tests.store.factories import record, settlement, states
from tests.store.postgres.counting import right, squeeze, tidy
from tests.store.postgres.database import Database

BACK = "interval '1 hour'"


def set_back(db: Database) -> None:
    """Let all that was written lie an hour further ahead, as it does where the clock is set back."""
    db.sql(f"UPDATE rota.heartbeat SET at = at + {BACK}")
    db.sql(f"UPDATE rota.timer_mark SET run_at = run_at + {BACK} WHERE isfinite(run_at)")
    db.sql(f"UPDATE rota.timer SET run_at = run_at + {BACK}")
    db.sql(f"UPDATE rota.tally_mark SET at = at + {BACK}")


@pytest.fixture
def staged(db: Database) -> None:
    """Jobs were staged before, so that there is a mark; then the clock was set back."""
    db.enqueue(1, delay=-1.0)
    assert db.own.run(db.store.stage(10)).staged == 1
    set_back(db)


@pytest.mark.usefixtures("staged")
def test_a_delay_is_kept(db: Database) -> None:
    """A job with a delay waits for its time, and is staged when that has come."""
    [job] = db.enqueue(1, delay=1800.0)
    for _ in range(3):
        staging = db.own.run(db.store.stage(10))
        assert staging.staged == 0
        assert staging.next_due is not None
        assert 1700 < staging.next_due <= 1800
    assert states(db.store, db.own, [job]) == [State.SCHEDULED]
    db.sql("UPDATE rota.timer SET run_at = run_at - interval '1 hour'")
    db.sql("UPDATE rota.timer_mark SET run_at = run_at - interval '1 hour'")
    assert db.own.run(db.store.stage(10)).staged == 1
    assert states(db.store, db.own, [job]) == [State.AVAILABLE]


@pytest.mark.usefixtures("staged")
def test_attempts_are_not_spent_in_a_row(db: Database) -> None:
    """A failed job waits as long as its retry policy says."""
    session = db.session()
    [job] = db.claim(session)
    db.own.run(db.store.settle(session, [settlement(job, Move.RETRY, delay=30.0)]))
    for _ in range(3):
        assert db.own.run(db.store.stage(10)).staged == 0
        assert db.claim(session) == []
    assert states(db.store, db.own, [job.id]) == [State.RETRYABLE]


@pytest.mark.usefixtures("staged")
def test_the_look_comes_to_rest(db: Database) -> None:
    """A job whose time is to come asks for one staging, and then for none."""
    db.enqueue(1, delay=1800.0)
    assert db.own.run(db.store.stage(10)).staged == 0
    assert far_off(db)


def test_a_late_transaction_comes_to_rest(db: Database) -> None:
    """Nor does one that was committed after the staging that was the last before the clock was set."""
    late = db.bare()
    db.enqueue(1, conn=late, delay=1800.0)
    db.enqueue(1, delay=-1.0)
    assert db.own.run(db.store.stage(10)).staged == 1
    set_back(db)
    late.commit()
    assert db.own.run(db.store.stage(10)).staged == 0
    assert far_off(db)


def test_a_dead_worker_is_missed(db: Database) -> None:
    """A session whose signs of life are from the future is silent."""
    db.enqueue(1)
    session = db.session(timeout=0.001)
    [job] = db.claim(session)
    set_back(db)
    assert db.own.run(db.store.look(["default"])).silent
    [rescue] = db.own.run(db.store.rescue())
    assert rescue.available == (job.id,)
    assert record(db.store, db.own, job.id).attempt == 1


def test_a_living_worker_is_not_missed(db: Database) -> None:
    """One sign of life by the new clock is enough."""
    session = db.session(timeout=600.0)
    set_back(db)
    assert db.own.run(db.store.renew(session)).alive
    assert not db.own.run(db.store.look(["default"])).silent
    assert db.own.run(db.store.rescue()) == []


def far_off(db: Database) -> bool:
    """Whether the next staging is a matter of minutes."""
    due = db.own.run(db.store.look(["default"])).due
    return due is not None and due > 1000


def test_counts_while_the_tables_turn(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The totals are written down before rows of the log are truncated.

    So they are though the newest mark is from the future.
    """
    for name in ("LOG_SIZE", "CURSOR_SIZE", "LEASE_SIZE", "TALLY_SIZE"):
        monkeypatch.setattr(rings, name, 0)
    monkeypatch.setattr(clearing, "REST", 0.0)
    monkeypatch.setattr(counters, "MARK_AGE", 0.0)
    session = db.session()
    db.enqueue(3)
    assert squeeze(db)
    set_back(db)
    for _ in range(6):
        db.enqueue(4)
        db.settle(session, db.claim(session))
        tidy(db)
        assert right(db)
    assert db.one("SELECT count(*) FROM rota.log") < 3 + 6 * 4


def test_totals_are_written_down(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Squeezing goes on: answers do not take longer until the clock has caught up."""
    monkeypatch.setattr(counters, "MARK_AGE", 0.0)
    db.enqueue(3)
    assert squeeze(db)
    set_back(db)
    db.enqueue(3)
    assert squeeze(db)
