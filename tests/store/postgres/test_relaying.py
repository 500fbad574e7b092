"""Relays on PostgreSQL: one at a time, and what becomes of those that are cut off or frozen."""

from collections.abc import Callable, Sequence

import pytest

from rota.errors import StoreUnavailable
from rota.model.job import ClaimedJob, JobId
from rota.model.settlement import Settlement, completed
from rota.store.postgres.connection import PostgresConnection
from rota.store.relaying import Relaying
from tests.store.factories import until
from tests.store.postgres.database import Database

RELAYING = Relaying("default", "shop.send", 100, 5.0)
IN_TRANSACTION = (
    "SELECT pid FROM pg_stat_activity "
    "WHERE datname = current_database() AND state = 'idle in transaction'"
)


class Taken:
    """Hands jobs over into a list; calls `first` before the last look, `then` with jobs in hand."""

    def __init__(
        self, *, first: Callable[[], object] | None = None, then: Callable[[], object] | None = None
    ) -> None:
        self.jobs: list[JobId] = []
        self._first, self._then = first, then

    def prepare(self) -> None:
        """Do what the test wants before the last look."""
        if self._first is not None:
            self._first()

    def __call__(self, jobs: Sequence[ClaimedJob]) -> list[Settlement]:
        """Take them."""
        if self._then is not None:
            self._then()
        self.jobs += [job.id for job in jobs]
        return [completed(job, 0.0) for job in jobs]


def hand_over(
    db: Database,
    hand: Taken,
    *,
    on: PostgresConnection | None = None,
    relaying: Relaying = RELAYING,
) -> int:
    """Hand the next jobs over, in a session of their own; how many."""
    return (on or db.own).run(db.store.hand_over(db.session(on=db.connect()), relaying, hand))


def test_one_relay_at_a_time(db: Database) -> None:
    """While one relay has jobs in its hands another one gets none, and does not wait."""
    jobs = db.enqueue(3)
    second, counts = Taken(), list[int]()
    first = Taken(then=lambda: counts.append(hand_over(db, second, on=db.connect())))
    assert hand_over(db, first) == 3
    assert counts == [0]
    assert (first.jobs, second.jobs) == (jobs, [])


def test_a_relay_that_was_cut_off_sends_nothing(db: Database) -> None:
    """A relay whose transaction the server has ended finds that out before it hands over."""
    jobs = db.enqueue(3)
    cut = f"SELECT pg_terminate_backend(pid, 5000) FROM ({IN_TRANSACTION}) AS relay"
    late, successor = Taken(first=lambda: db.sql(cut)), Taken()
    with pytest.raises(StoreUnavailable):
        hand_over(db, late)
    assert late.jobs == []
    assert hand_over(db, successor) == 3
    assert successor.jobs == jobs


def test_a_frozen_relay_holds_nothing_for_long(db: Database) -> None:
    """The server ends the transaction of a relay that takes too long; the jobs keep their order."""
    jobs = db.enqueue(3)
    successor = Taken()

    def freeze() -> None:
        assert db.sql(IN_TRANSACTION)
        until(lambda: None if db.sql(IN_TRANSACTION) else True)
        # The jobs go to another relay before this one knows.
        assert hand_over(db, successor, on=db.connect()) == 3

    with pytest.raises(StoreUnavailable):
        # A tenth of a second with the margin.
        hand_over(db, Taken(then=freeze), relaying=RELAYING._replace(seconds=-4.9))
    assert successor.jobs == jobs


def test_a_slow_target_has_its_time(db: Database) -> None:
    """The server allows the target its time, though it ends idle transactions sooner elsewhere."""
    db.enqueue(3)
    db.own.raw().execute("SET idle_in_transaction_session_timeout = '50ms'")
    idle = f"{IN_TRANSACTION} AND clock_timestamp() - state_change > interval '0.2 s'"
    assert hand_over(db, Taken(then=lambda: until(lambda: db.sql(idle) or None, 3))) == 3


def test_a_late_transaction_comes_when_it_commits(db: Database) -> None:
    """Jobs beside it that could not be handed over keep their order; none is handed over twice."""
    late = db.bare()
    late.execute("SELECT pg_current_xact_id()")
    slow = db.enqueue(2, conn=late)
    quick = db.enqueue(3)
    hand = Taken()
    with pytest.raises(ZeroDivisionError):
        hand_over(db, Taken(then=lambda: 1 / 0))
    assert hand_over(db, hand, relaying=RELAYING._replace(limit=1)) == 1
    late.commit()
    assert hand_over(db, hand) == 4
    assert hand.jobs == [quick[0], *slow, *quick[1:]]


@pytest.mark.parametrize("locked", [False, True])
def test_a_lock_before_the_first_write_keeps_the_order_of_a_key(
    db: Database, *, locked: bool
) -> None:
    """Of overlapping transactions the first writer comes first; with a lock before, its holder."""
    later, sooner = db.bare(), db.bare()
    first_of_all = "SELECT pg_advisory_xact_lock(4711)" if locked else "SELECT pg_current_xact_id()"
    if not locked:
        later.execute(first_of_all)
    sooner.execute(first_of_all)
    first = db.enqueue(1, conn=sooner)
    sooner.commit()
    if locked:
        later.execute(first_of_all)
    second = db.enqueue(1, conn=later)
    later.commit()
    hand = Taken()
    assert hand_over(db, hand) == 2
    assert hand.jobs == ([*first, *second] if locked else [*second, *first])
