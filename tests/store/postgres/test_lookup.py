"""Looking at jobs that move on meanwhile."""

from rota.job import JobFilter
from rota.states import State
from tests.store.factories import until
from tests.store.postgres.database import KEEP, Database, Later


def test_a_list_shows_one_moment(db: Database) -> None:
    """A job that is claimed and finished during a listing is in it once, as it was at first."""
    [job] = db.enqueue()
    third = db.bare()
    third.execute("LOCK TABLE rota.timer IN ACCESS EXCLUSIVE MODE")
    listing = Later(db, db.store.list_jobs(JobFilter()))
    until(lambda: db.waits_for(listing.pid, third.info.backend_pid) or None)
    session = db.session()
    assert db.settle(session, db.claim(session), keep=KEEP) == []
    third.rollback()
    assert [(one.id, one.state) for one in listing.result()] == [(job, State.AVAILABLE)]
