"""Looking at jobs that move on meanwhile."""

import pytest

from rota.model.job import JobFilter, JobId, Keys, Order
from rota.model.states import State
from rota.model.unique import Unique
from tests.store.factories import spec_of, until
from tests.store.postgres.database import KEEP, Database, Later


def test_a_list_shows_one_moment(db: Database) -> None:
    """A job that is claimed and finished during a listing is in it once, as it was at first."""
    [job] = db.enqueue()
    session = db.session()
    third = db.bare()
    third.execute("LOCK TABLE rota.timer IN ACCESS EXCLUSIVE MODE")
    listing = Later(db, db.store.list_jobs(JobFilter()))
    until(lambda: db.waits_for(listing.pid, third.info.backend_pid) or None)
    assert db.settle(session, db.claim(session), keep=KEEP) == []
    third.rollback()
    assert [(listed.id, listed.state) for listed in listing.result()] == [(job, State.AVAILABLE)]


def test_pages_of_transactions_that_overlap(db: Database) -> None:
    """A page ends with its oldest job, even if an older transaction than newer jobs' brought it."""
    late = db.bare()
    early = db.enqueue(2, conn=late)
    between = db.enqueue(2)
    last = db.enqueue(2, conn=late)
    late.commit()
    wanted = [*early, *between, *last][::-1]
    for size in range(1, 7):
        found: list[JobId] = []
        while page := db.own.run(
            db.store.list_jobs(
                JobFilter(State.AVAILABLE, limit=size, after=found[-1] if found else None)
            )
        ):
            found += [job.id for job in page]
        assert found == wanted, f"in pages of {size}"


@pytest.mark.parametrize("moment", ["20000-01-01 00:00+00", "9999-12-31 23:00+00", "0044-03-15 BC"])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Lima"])
def test_a_time_that_python_cannot_hold(db: Database, moment: str, zone: str) -> None:
    """A job with such a time is shown like others, and hides none of them, in every time zone."""
    spec = spec_of(delay=3600.0, unique=Unique(key="x"))
    [far] = db.own.run(db.store.enqueue(Order(spec, ["{}"], Keys(unique=["one"])))).placed
    [near] = db.enqueue(delay=3600.0)
    [free] = db.enqueue()
    db.sql("UPDATE rota.timer SET run_at = %s WHERE id = %s", moment, far.job)
    db.sql(f"ALTER DATABASE {db.admin.info.dbname} SET timezone = '{zone}'")
    own = db.connect()
    assert {listed.id for listed in own.run(db.store.list_jobs(JobFilter()))} == {
        far.job,
        near,
        free,
    }
    [shown] = own.run(db.store.list_jobs(JobFilter(subject="one")))
    assert shown.scheduled_at is not None
    assert shown.scheduled_at.astimezone() == shown.scheduled_at
    assert own.run(db.store.get([far.job])) == [shown]
    [waiting] = own.run(db.store.get([free]))
    assert waiting.scheduled_at is None
