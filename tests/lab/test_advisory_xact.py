"""What advisory locks in a where clause depend on, and what the row lock besides them does."""

from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from rota_lab.databases import Database
from rota_lab.queue import Trial
from rota_lab.strategy import Job
from tests.fixtures.workers import LONG
from tests.lab.bystander import Hand

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("sorts", [True, False])
def test_a_plan_that_sorts_locks_all_rows(trial: Callable[..., Trial], *, sorts: bool) -> None:
    """After an analyze of one row, the first worker locks all that come, and others find nothing."""
    with trial("advisory-xact", Database.POSTGRES).fresh() as queue:
        own = queue.strategy
        own.enqueue([Job("1", 9)])
        if sorts:
            own.db.execute("analyze queue")
        own.enqueue([Job(str(number)) for number in range(2, 22)])
        first = Hand(queue, holds=True).start()
        assert first.at_work.wait(LONG)
        second = Hand(queue).start()
        second.join()
        assert len(second.worked) == (0 if sorts else 20)
        first.join()
        assert len({*first.worked, *second.worked}) == 21


@pytest.mark.parametrize(
    ("name", "waits"), [("advisory-xact", True), ("advisory-xact-no-key", False)]
)
def test_who_refers_to_a_job_at_work(
    name: str, trial: Callable[..., Trial], *, waits: bool
) -> None:
    """Waits for it, unless the row lock leaves the key alone."""
    with trial(name, Database.POSTGRES).fresh() as queue:
        own = queue.strategy
        own.db.execute("alter table queue add column id int generated always as identity unique")
        own.db.execute("create table notes (queue_id int references queue (id) on delete cascade)")
        own.db.execute("insert into queue values ('1', 1, now())")
        hand = Hand(queue, holds=True).start()
        assert hand.at_work.wait(LONG)
        with closing(queue.location.connect()) as other:
            other.execute("set lock_timeout = 200")
            if waits:
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    other.execute("insert into notes values (1)")
            else:
                other.execute("insert into notes values (1)")
        hand.join()
        assert hand.worked == ["1"]
        assert own.left() == 0
