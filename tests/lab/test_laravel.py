"""`laravel` and its remedies on MariaDB: the deadlock of a delete and a claim, arranged."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass

import pytest

from rota_lab.databases import Database
from rota_lab.queue import Queue, Trial
from rota_lab.strategy import Job
from tests.fixtures.workers import LONG, until
from tests.lab.bystander import Bystander, Hand

ROW = "select * from jobs where id = (select id from jobs where payload = %s) for update"
FORCED = ("laravel", {"force_queue_index": 1})
"""Else it depends on statistics whether claims walk the index."""

EXPIRE = "update jobs set reserved_at = reserved_at - 90"


@dataclass(frozen=True)
class Met:
    """What came of a meeting.

    Attributes:
        worked: The jobs, as often as they were worked.
        deletes: How often a delete was a deadlock's victim.
        claims: How often a claim was.
        left: Rows that are left in the table.
    """

    worked: list[str]
    deletes: int
    claims: int
    left: int


@pytest.fixture
def queue(trial: Callable[..., Trial], request: pytest.FixtureRequest) -> Iterator[Queue]:
    """An empty queue of the variant that is the parameter; its claims do not expire in a test."""
    name, settings = request.param
    with trial(name, Database.MARIADB, retry_after=90, **settings).fresh() as queue:
        yield queue


def meet(queue: Queue, *, waited: bool) -> Met:
    """Let a worker's delete and another one's claim meet in the index on `queue`.

    A job is done and shall be deleted, which waits for its row: the test holds it. The claim has
    locked the index's entry of that job, and waits for the same row, behind the delete. Then the
    delete gets the row, and needs the entry. Each worker ends after its job, so that no others
    meet, and the last worker comes when all claims have expired.

    Args:
        queue: An empty queue.
        waited: Whether the claim has waited for an earlier job, so that it has more locks.
    """
    with ExitStack() as stack:
        looking, first, second = (stack.enter_context(closing(Bystander(queue))) for _ in range(3))
        hands = []
        if waited:
            queue.strategy.enqueue([Job("0")])
            hands.append(at_work(queue))
        queue.strategy.enqueue([Job("1"), Job("2")])
        deleting = at_work(queue)
        assert deleting.worked == ["1"]
        before = looking.waits()
        if waited:
            first.hold(ROW, "0")
        second.hold(ROW, "1")
        deleting.released.set()
        until(lambda: looking.waits() == before + 1, "the delete to wait")
        claiming = Hand(queue, holds=True).start()
        until(lambda: looking.waits() == before + 2, "the claim to wait")
        if waited:
            first.release()
            until(lambda: looking.waits() == before + 3, "the claim to wait for job 1")
        second.release()
        deleting.join()
        assert claiming.at_work.wait(LONG)
        claiming.shift.end()
        hands += [deleting, claiming]
        for hand in hands:
            hand.join()
        looking.change(EXPIRE)
        last = Hand(queue).start()
        last.join()
        return Met(
            worked=sorted(text for hand in (*hands, last) for text in hand.worked),
            deletes=len(deleting.shift.told().deadlocks),
            claims=len(claiming.shift.told().deadlocks),
            left=queue.strategy.db.rows("select count(*) from jobs")[0][0],
        )


def at_work(queue: Queue) -> Hand:
    """A worker at work, which ends after its job."""
    hand = Hand(queue, holds=True).start()
    assert hand.at_work.wait(LONG)
    hand.shift.end()
    return hand


@pytest.mark.parametrize(
    "queue",
    [FORCED, ("laravel", {**FORCED[1], "select_before_delete": 0})],
    indirect=True,
    ids=["as it is", "without the select before"],
)
def test_a_delete_that_is_a_victim_repeats_its_job(queue: Queue) -> None:
    """The claim has waited twice and weighs more, so the delete is undone, and tried once only."""
    assert meet(queue, waited=True) == Met(["0", "1", "1", "2"], deletes=1, claims=0, left=0)


@pytest.mark.parametrize("queue", [FORCED], indirect=True)
def test_a_claim_that_is_a_victim_does_no_harm(queue: Queue) -> None:
    """The delete has changed a row, and weighs more than a claim that waits for the first time."""
    assert meet(queue, waited=False) == Met(["1", "2"], deletes=0, claims=1, left=0)


@pytest.mark.parametrize(
    "queue",
    [("laravel-retry", FORCED[1]), ("laravel", {**FORCED[1], "delete_attempts": 5})],
    indirect=True,
    ids=["laravel-retry", "laravel"],
)
def test_five_attempts_repair_it(queue: Queue) -> None:
    """The delete is a victim all the same, and its second attempt deletes the job."""
    assert meet(queue, waited=True) == Met(["0", "1", "2"], deletes=1, claims=0, left=0)


@pytest.mark.parametrize("queue", [("laravel-unindexed", {})], indirect=True)
def test_without_the_index_there_is_no_deadlock(queue: Queue) -> None:
    """There is nothing to wait for but the row."""
    assert meet(queue, waited=True) == Met(["0", "1", "2"], deletes=0, claims=0, left=0)


@pytest.mark.parametrize("queue", [("laravel-mark", {})], indirect=True)
def test_a_marked_job_is_deleted_by_the_next_one_who_gets_it(queue: Queue) -> None:
    """Its delete has failed; the job has expired, and is not worked again."""
    queue.strategy.enqueue([Job("1"), Job("2")])
    queue.strategy.db.execute(
        "update jobs set reserved_at = 1, delete_mark = 1 where payload = %s", "1"
    )
    assert queue.strategy.left() == 1
    hand = Hand(queue).start()
    hand.join()
    assert hand.worked == ["2"]
    assert queue.strategy.db.rows("select count(*) from jobs")[0][0] == 0
