"""`redis-drain`: what its drainer's crash does, and what it must not miss."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest

from rota.errors import StoreUnavailable
from rota_lab.databases import Database
from rota_lab.queue import Queue, Trial
from rota_lab.shift import Shift
from rota_lab.strategies.redis_drain import RedisDrain
from rota_lab.strategy import Job
from rota_lab.work import nothing
from tests.fixtures.workers import LONG, until
from tests.lab.bystander import Bystander, Hand, attended

BETWEEN = (
    "select from pg_stat_activity where datname = current_database()"
    " and state = 'idle in transaction' and query like 'select id, job from pending_jobs%'"
)
REFUSED = (
    "select from pg_stat_activity where datname = current_database()"
    " and state = 'idle' and query like 'select pg_try_advisory_lock%'"
)


@pytest.fixture
def queue(trial: Callable[..., Trial]) -> Iterator[Queue]:
    """An empty queue without a drainer."""
    with trial("redis-drain", Database.POSTGRES).fresh() as queue:
        yield queue


def listed(queue: Queue) -> list[str]:
    """What is in Redis, the next one last."""
    assert isinstance(queue.strategy, RedisDrain)
    found: list[str] = queue.strategy.client.lrange(queue.strategy.key, 0, -1)
    return found


def drain(queue: Queue) -> None:
    """A drainer that may lose its database."""
    with closing(RedisDrain(queue.location)) as drainer, suppress(StoreUnavailable):
        drainer.attend(Shift(nothing))


def test_a_drainer_that_dies_hands_out_twice_and_loses_nothing(queue: Queue) -> None:
    """It has pushed, and could not delete; the next one pushes again."""
    with closing(Bystander(queue)) as bystander:
        queue.strategy.enqueue([Job("1"), Job("2")])
        bystander.hold("select * from pending_jobs for update")
        thread = threading.Thread(target=drain, args=(queue,))
        thread.start()
        until(bystander.waiting, "the drainer to delete")
        assert listed(queue) == ["2", "1"]
        queue.strategy.db.rows(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and wait_event_type = 'Lock'"
        )
        thread.join(LONG)
        bystander.release()
        assert queue.strategy.left() == 4
        with attended(queue):
            hand = Hand(queue).start()
            hand.join()
    assert hand.worked == ["1", "2", "1", "2"]
    assert queue.strategy.left() == 0


def test_what_commits_late_is_not_missed(queue: Queue) -> None:
    """A job of a transaction that began first, and commits between the drainer's two statements."""
    assert isinstance(queue.strategy, RedisDrain)
    client = queue.strategy.client
    with closing(Bystander(queue)) as bystander:
        bystander.hold("insert into pending_jobs (job) values ('1') returning id")
        queue.strategy.enqueue([Job("2")])
        client.client_pause(int(LONG * 1000), all=False)
        try:
            with attended(queue):
                until(lambda: queue.strategy.db.rows(BETWEEN), "the drainer to push")
                bystander.change("commit")
                client.client_unpause()
                until(lambda: listed(queue) == ["1", "2"], "the drainer")
        finally:
            client.client_unpause()


def test_there_is_one_drainer(queue: Queue) -> None:
    """A second one waits until the first one is gone."""
    with closing(Bystander(queue)) as bystander:
        queue.strategy.enqueue([Job("1")])
        bystander.hold("select * from pending_jobs for update")
        with attended(queue):
            until(bystander.waiting, "the drainer to delete")
            with attended(queue):
                until(lambda: queue.strategy.db.rows(REFUSED), "the second one to try")
                bystander.release()
                hand = Hand(queue).start()
                hand.join()
    assert hand.worked == ["1"]


def test_without_redis_it_says_so(queue: Queue) -> None:
    """An error of the kind that ends an experiment with what was measured by then."""
    gone = RedisDrain(
        type(queue.location)(Database.POSTGRES, queue.location.url, "redis://localhost:1")
    )
    with closing(gone), pytest.raises(StoreUnavailable, match="Redis"):
        gone.open()
