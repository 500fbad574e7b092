"""How numbers from a sequence lose jobs, and how they come back."""

from collections.abc import Callable
from contextlib import closing

import pytest

from rota.errors import StoreUnavailable
from rota_lab.databases import Database
from rota_lab.queue import Queue, Trial
from rota_lab.strategy import Job
from tests.fixtures.workers import until
from tests.lab.bystander import Bystander, Hand, attended

pytestmark = pytest.mark.postgres

DESIGNS = [("sequence", True), ("sequence-requeued", False)]


def alone(queue: Queue) -> list[str]:
    """What a worker finds now."""
    hand = Hand(queue).start()
    hand.join()
    return hand.worked


@pytest.mark.parametrize(("name", "lost"), DESIGNS)
def test_a_claim_that_is_rolled_back(name: str, trial: Callable[..., Trial], *, lost: bool) -> None:
    """The sequence does not go back, so that no worker gets the number again."""
    with (
        trial(name, Database.POSTGRES, too_long=0.5).fresh() as queue,
        closing(Bystander(queue)) as bystander,
    ):
        queue.strategy.enqueue([Job("1"), Job("2")])
        bystander.hold("select from queue where job = '1' for update")
        hand = Hand(queue).start()
        until(lambda: bystander.waiting() == 1, "the claim to wait")
        with closing(queue.location.connect()) as db:
            db.rows(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and wait_event_type = 'Lock'"
            )
        with pytest.raises(StoreUnavailable):
            hand.join()
        bystander.release()
        with attended(queue):
            assert alone(queue) == (["2"] if lost else ["2", "1"])
        assert queue.strategy.left() == lost


@pytest.mark.parametrize(("name", "lost"), DESIGNS)
def test_an_enqueue_that_is_not_committed(
    name: str, trial: Callable[..., Trial], *, lost: bool
) -> None:
    """Its number comes up before anybody can see it."""
    with trial(name, Database.POSTGRES, too_long=0.5).fresh() as queue:
        with closing(queue.location.connect()) as other:
            other.begin()
            other.execute(
                "insert into queue (itemid, initialitemid, job)"
                " values (nextval('pk'), currval('pk'), '1')"
            )
            assert alone(queue) == []
            other.execute("commit")
        queue.strategy.enqueue([Job("2")])
        with attended(queue):
            assert alone(queue) == (["2"] if lost else ["2", "1"])
        assert queue.strategy.left() == lost
