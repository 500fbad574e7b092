"""What each strategy promises and what it is known to do wrong, in a table; each is tried."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import LiteralString

import pytest

from rota.measure.processes import ProcessEnded
from rota_lab.databases import Database
from rota_lab.queue import Queue, Trial
from rota_lab.strategy import Job, strategies, strategy
from tests.fixtures.workers import LONG, until
from tests.lab.bystander import Bystander, Hand, attended

pytestmark = pytest.mark.large


@dataclass(frozen=True)
class Row:
    """A strategy.

    Attributes:
        twice: Two workers get the same job, although none has failed.
        serial: A worker waits while another one is at work.
        loses: A job is lost when its worker is killed at work.
        ordered: One worker alone takes jobs in the order in which they were enqueued.
        expire: Makes the claim of a killed worker expire, so that a test need not wait for it.
        race: Rows to be held while two workers claim, where `twice` needs them to meet in a claim.
        settings: Those without which a test would take long.
    """

    name: str
    twice: bool = False
    serial: bool = False
    loses: bool = False
    ordered: bool = True
    expire: LiteralString | None = None
    race: LiteralString | None = None
    settings: Mapping[str, float] = field(default_factory=dict)


EXPIRE: LiteralString = "update jobs set reserved_at = reserved_at - 90"

TABLE = [
    # Article 1
    Row("queue-classic", ordered=False),
    Row("que"),
    Row("que-last-id"),
    Row("que-many"),
    Row("redis-drain", loses=True),
    # Article 2
    Row("skip-locked"),
    Row("skip-locked-2pc", loses=True),
    Row("for-update-subselect", serial=True),
    Row("unlocked-subselect", twice=True, serial=True),
    Row("sequence", loses=True),
    Row("sequence-requeued", settings={"too_long": 2}),
    # Article 3
    Row("fetchq", expire="update tasks set next_iteration = now() where attempts = 1"),
    # Article 4
    Row("select-delete", twice=True),
    Row("for-update", serial=True),
    Row("claimed-by-pid"),
    Row("advisory-xact"),
    Row("advisory-xact-no-key"),
    # It hands out twice what goes between a snapshot and a lock: see test_snapshots.py.
    Row("advisory-xact-alone"),
    # Article 5
    Row("laravel", settings={"retry_after": 90}, expire=EXPIRE),
    Row("laravel-retry", settings={"retry_after": 90}, expire=EXPIRE),
    Row("laravel-mark", settings={"retry_after": 90}, expire=EXPIRE),
    Row("laravel-unindexed", settings={"retry_after": 90}, expire=EXPIRE),
    # A random pick keeps no order, also of one worker alone.
    Row(
        "laravel-optimistic",
        ordered=False,
        settings={"retry_after": 90, "window": 10},
        expire=EXPIRE,
    ),
    Row("laravel-optimistic-first", settings={"retry_after": 90}, expire=EXPIRE),
    # Rota: one job at a time, so that the second worker finds one that the first has not claimed.
    Row("rota", settings={"concurrency": 1, "prefetch": 0, "session_timeout": 1}),
]

CASES = [
    pytest.param(row, database, id=f"{row.name}-{database}")
    for row in TABLE
    for database in strategy(row.name).databases
]
"""Each strategy on each of its databases."""


@pytest.fixture
def queue(row: Row, database: Database, trial: Callable[..., Trial]) -> Iterator[Queue]:
    """The strategy's queue, empty."""
    with trial(row.name, database, **row.settings).fresh() as queue, attended(queue):
        yield queue


@pytest.fixture
def bystander(queue: Queue) -> Iterator[Bystander]:
    """A bystander who looks at the queue."""
    with closing(Bystander(queue)) as made:
        yield made


def test_the_table_is_complete() -> None:
    """Each strategy has a row, and one only."""
    assert sorted(row.name for row in TABLE) == sorted(strategies())


@pytest.mark.parametrize(("row", "database"), CASES)
def test_two_workers(row: Row, queue: Queue, bystander: Bystander) -> None:
    """The second worker gets the same job, or waits, or gets another job, as the table says."""
    queue.strategy.enqueue([Job("1"), Job("2")])
    if row.race is not None:
        bystander.hold(row.race)
        first, second = Hand(queue).start(), Hand(queue).start()
        until(lambda: bystander.waiting() == 2, "both workers to wait")
        bystander.release()
        waits = False
    else:
        first = Hand(queue, holds=True).start()
        assert first.at_work.wait(LONG)
        second = Hand(queue).start()
        until(lambda: second.worked or bystander.waiting() or second.ended, "the second worker")
        waits = bool(bystander.waiting()) and not second.worked
    first.join()
    second.join()
    assert {*first.worked, *second.worked} == {"1", "2"}
    assert (bool({*first.worked} & {*second.worked}), waits) == (row.twice, row.serial)
    assert queue.strategy.left() == 0


@pytest.mark.parametrize(("row", "database"), CASES)
def test_a_worker_is_killed(row: Row, queue: Queue, bystander: Bystander) -> None:
    """The job that a killed worker was at is worked by the next one, or not, as the table says."""
    queue.strategy.enqueue([Job("1"), Job("2"), Job("3")])
    # The attending process lives on, with a session of its own.
    before = bystander.sessions() + queue.strategy.attended
    with queue.workers(1, die) as workers:
        workers.go()
        with pytest.raises(ProcessEnded):
            until(lambda: not workers.tell())
        until(lambda: bystander.sessions() <= before, "the server to notice")
        if row.expire is not None:
            bystander.change(row.expire)
        next_one = Hand(queue).start()
        next_one.join()
    lost = {"1", "2", "3"} - {*next_one.worked}
    assert len(lost) == row.loses


@pytest.mark.parametrize(("row", "database"), CASES)
def test_one_worker(row: Row, queue: Queue) -> None:
    """All jobs are worked once, in order or not, as the table says."""
    texts = [str(number) for number in range(30)]
    queue.strategy.enqueue([Job(text) for text in texts])
    # Not at once where another process moves them: for a moment they are in both places.
    until(lambda: queue.strategy.left() == len(texts))
    hand = Hand(queue).start()
    hand.join()
    assert sorted(hand.worked) == sorted(texts)
    assert (hand.worked == texts) is row.ordered
    assert queue.strategy.left() == 0


def die(text: str) -> None:
    """What a worker does that is killed."""
    del text
    os.kill(os.getpid(), signal.SIGKILL)
