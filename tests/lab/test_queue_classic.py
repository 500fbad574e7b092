"""What lock_head does."""

from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from rota_lab.databases import Database
from rota_lab.queue import Queue, Trial
from rota_lab.shift import Failed, Shift
from rota_lab.strategy import Job
from tests.fixtures.workers import until
from tests.lab.bystander import Bystander, Hand

pytestmark = pytest.mark.postgres


def fail(_text: str) -> None:
    """What a job does that fails."""
    raise Failed


def enqueued(queue: Queue, count: int) -> None:
    """Jobs with the texts 1, 2, 3 and so on."""
    queue.strategy.enqueue([Job(str(number)) for number in range(1, count + 1)])


def test_few_jobs_keep_their_order(trial: Callable[..., Trial]) -> None:
    """Only where there are as many as the bound is one chosen at random."""
    with trial("queue-classic", Database.POSTGRES, top_bound=9).fresh() as queue:
        enqueued(queue, 8)
        hand = Hand(queue).start()
        hand.join()
    assert hand.worked == [str(number) for number in range(1, 9)]


@pytest.mark.parametrize(("held", "spins"), [(1, True), (20, False)])
def test_all_claims_meet_at_the_first_row(
    held: int, trial: Callable[..., Trial], *, spins: bool
) -> None:
    """Whatever the offset: PostgreSQL locks the rows that it skips. Claims do not wait, they spin."""
    with trial("queue-classic", Database.POSTGRES).fresh() as queue:
        enqueued(queue, 20)
        with closing(queue.location.connect()) as holding:
            holding.begin()
            holding.rows("select from queue_classic_jobs where id = %s for update", held)
            own = queue.strategy
            own.db.execute("set statement_timeout = 200")
            if spins:
                with pytest.raises(psycopg.errors.QueryCanceled):
                    own.step(Shift(fail))
            else:
                with pytest.raises(Failed):
                    own.step(Shift(fail))


def test_what_fails_stays_locked(trial: Callable[..., Trial]) -> None:
    """Until its worker is gone and another one begins."""
    with (
        trial("queue-classic", Database.POSTGRES).fresh() as queue,
        closing(Bystander(queue)) as bystander,
    ):
        enqueued(queue, 1)
        before = bystander.sessions()
        with pytest.raises(Failed):
            queue.strategy.step(Shift(fail))
        hand = Hand(queue).start()
        hand.join()
        assert hand.worked == []
        queue.strategy.close()
        until(lambda: bystander.sessions() < before, "the server to notice")
        hand = Hand(queue).start()
        hand.join()
        assert hand.worked == ["1"]
