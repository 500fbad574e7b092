"""The lab's processes: what they tell when they lose their database, and when they end."""

from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rota.errors import StoreUnavailable
from rota_lab.databases import Database
from rota_lab.experiments.exactly_once import CRASHES, Accident, tally
from rota_lab.protocol import Noting, make_protocol, read_protocol, until_done
from rota_lab.queue import Queue, Trial
from rota_lab.strategy import Job
from tests.fixtures.workers import LONG, until
from tests.lab.bystander import Bystander


def cut_off(queue: Queue) -> None:
    """End all sessions in the queue's database, and refuse new ones that would replace idle ones."""
    url = queue.location.url
    name = conninfo_to_dict(url)["dbname"]
    other = make_conninfo(url, dbname="postgres")
    with closing(psycopg.connect(other, autocommit=True)) as connection:
        connection.execute(
            sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(str(name)))
        )
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )


@pytest.mark.parametrize("name", ["skip-locked", "rota"])
def test_workers_that_are_cut_off(name: str, trial: Callable[..., Trial]) -> None:
    """They say so when they are asked, and the error names the strategy."""
    with trial(name, Database.POSTGRES).fresh() as queue, queue.workers(1) as workers:
        workers.go()
        queue.strategy.enqueue([Job("1")])
        until(lambda: any(report.worked for report in workers.tell()), "the first job")
        cut_off(queue)
        with pytest.raises(StoreUnavailable, match=f"^{name}: "):
            until(lambda: workers.tell() is None, "the error")


def test_a_producer_that_is_cut_off(trial: Callable[..., Trial]) -> None:
    """It says so when it is asked."""
    with trial("skip-locked", Database.POSTGRES).fresh() as queue, queue.producer(50) as producer:
        producer.go()
        until(producer.sent, "the first job")
        cut_off(queue)
        with pytest.raises(StoreUnavailable, match=r"^the producer: "):
            until(lambda: producer.sent() < 0, "the error")


def test_workers_stop_when_they_are_told(trial: Callable[..., Trial]) -> None:
    """Without `drain` they wait for more; the last words have what was not told before."""
    with (
        trial("skip-locked", Database.POSTGRES).fresh() as queue,
        closing(Bystander(queue)) as bystander,
    ):
        before = bystander.sessions()
        with queue.workers(2) as workers:
            workers.go()
            queue.strategy.enqueue([Job(str(number)) for number in range(20)])
            until(lambda: queue.strategy.left() == 0, "all jobs")
            told = workers.stop()
            assert sum(len(report.worked) for report in told) == 20
            assert sum(len(report.claims) for report in told) == 20
            assert all(report.ended for report in told)
            until(lambda: bystander.sessions() == before, "the workers' sessions to end")


def test_killed_workers_are_replaced(trial: Callable[..., Trial]) -> None:
    """One alone that is killed at each job: the next one does what it has left."""
    with trial("skip-locked", Database.POSTGRES).fresh() as queue:
        make_protocol(queue.location)
        queue.strategy.enqueue([Job("1"), Job("2")])
        with queue.workers(1, Accident(Noting(queue.location), CRASHES, 1)) as workers:
            workers.go()
            assert until(workers.replace, "the first death") == 1
            assert until(workers.replace, "the second death") == 1
            for _ in until_done(queue.strategy, LONG):
                assert workers.replace() == 0
            workers.stop()
        found = tally(["1", "2"], read_protocol(queue.location))
    assert (found.killed, found.lost, found.again) == (2, 0, 0)


def test_jobs_that_no_worker_does(trial: Callable[..., Trial]) -> None:
    """The experiment gives up on them when nothing has happened for `patience` seconds."""
    with trial("skip-locked", Database.POSTGRES).fresh() as queue:
        make_protocol(queue.location)
        queue.strategy.enqueue([Job("1")])
        looks = sum(1 for _ in until_done(queue.strategy, 0.3))
        assert queue.strategy.left() == 1
    assert 2 < looks < 10


def test_patience_begins_again_with_each_entry(trial: Callable[..., Trial]) -> None:
    """As long as something happens one waits, however long it takes in all."""
    with trial("skip-locked", Database.POSTGRES).fresh() as queue:
        make_protocol(queue.location)
        queue.strategy.enqueue([Job("1")])
        with closing(Noting(queue.location)) as noting:
            looks = 0
            for _ in until_done(queue.strategy, 0.35):
                looks += 1
                if looks < 10:
                    noting("1")
    assert looks > 10
