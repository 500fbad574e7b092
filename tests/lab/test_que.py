"""What Que and the two changes of article 1 do."""

from collections.abc import Callable
from contextlib import closing
from typing import Any, LiteralString

import pytest

from rota_lab.databases import Database
from rota_lab.queue import Queue, Trial
from rota_lab.shift import Failed, Shift
from rota_lab.strategy import Job, Strategy
from tests.fixtures.postgres import LOCKS
from tests.fixtures.workers import LONG, until
from tests.lab.bystander import Hand

pytestmark = pytest.mark.postgres

FIRST_TERM: LiteralString = """
    explain (analyze, buffers, format json)
    select j from que_jobs as j
    where queue = ''::text and run_at <= now() and job_id > %s::bigint
    order by priority, run_at, job_id limit 1
"""


@pytest.mark.parametrize("name", ["que", "que-last-id", "que-many"])
def test_priorities(name: str, trial: Callable[..., Trial]) -> None:
    """What is urgent comes first; jobs of a priority keep their order."""
    with trial(name, Database.POSTGRES, batch=1).fresh() as queue:
        queue.strategy.enqueue([Job("1"), Job("2", 5), Job("3"), Job("4", 5)])
        hand = Hand(queue).start()
        hand.join()
    assert hand.worked == ["2", "4", "1", "3"]


@pytest.mark.parametrize("name", ["que", "que-last-id", "que-many"])
def test_what_has_failed_comes_back(name: str, trial: Callable[..., Trial]) -> None:
    """Behind the others, with the error; no lock is left."""
    worked: list[str] = []

    def work(text: str) -> None:
        worked.append(text)
        if worked == ["1"]:
            raise Failed("no luck")

    with trial(name, Database.POSTGRES).fresh() as queue:
        own = queue.strategy
        own.enqueue([Job("1"), Job("2"), Job("3")])
        shift = Shift(work)
        with pytest.raises(Failed):
            own.step(shift)
        [failed] = own.db.rows("select * from que_jobs where error_count = 1")
        assert (failed.args, failed.last_error) == (["1"], "no luck")
        own.run(shift)
        assert own.left() == 0
        locks = "select * from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
        assert own.db.rows(locks) == []
    assert worked == ["1", "2", "3", "1"]


def touched(db: Any, last_job_id: int) -> tuple[int, int]:
    """How many pages the first term of a claim reads, and how many the index has."""
    [pages] = db.rows("select pg_relation_size('que_jobs_pkey') / 8192 as number")
    [plan] = db.rows(FIRST_TERM, last_job_id)
    [plan] = plan[0]
    return plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"], pages.number


@pytest.mark.parametrize("together", [False, True])
def test_last_job_id_does_not_bound_the_scan(
    trial: Callable[..., Trial], *, together: bool
) -> None:
    """It spares the rows, not their index entries: the claim still reads nearly the whole index.

    Unless jobs that were enqueued together have the same run_at, since PostgreSQL 18.
    """
    with trial("que-last-id", Database.POSTGRES).fresh() as queue, queue.long_transaction():
        db = queue.strategy.db
        db.execute(
            "insert into que_jobs (job_class, args, run_at) select 'Work', '[]',"
            " now() - interval '1 day' + number * %s * interval '1 second'"
            " from generate_series(1, 20000) as number",
            0 if together else 1,
        )
        db.execute("delete from que_jobs where job_id <= 19900")
        db.execute("analyze que_jobs")
        everything, pages = touched(db, 0)
        behind, pages = touched(db, 19900)
        [server] = db.rows("select current_setting('server_version_num')::int as version")
    if together and server.version >= 180000:
        assert behind < 10
    else:
        assert pages * 0.9 < behind < everything / 2


def stepped(strategy: Strategy, worked: list[str]) -> bool:
    """Whether a worker that does not drain finds a job."""
    return strategy.step(Shift(worked.append, drain=False))


def test_jitter(trial: Callable[..., Trial]) -> None:
    """A job before the last one is passed over until the worker forgets where it was."""
    with trial("que-last-id", Database.POSTGRES).fresh() as queue:
        own, worked = queue.strategy, list[str]()
        own.enqueue([Job("1"), Job("2")])
        with closing(queue.location.connect()) as other:
            other.rows("select pg_advisory_lock(1)")
            assert stepped(own, worked)
        with closing(queue.location.connect()) as db:
            until(lambda: not db.rows(f"select from {LOCKS} where locktype = 'advisory'"), "unlock")
        assert not stepped(own, worked)
        assert own.left() == 1
        own.settings = {**own.settings, "jitter": -1}
        assert stepped(own, worked)
    assert worked == ["2", "1"]


def test_jobs_are_stuck_behind_one_of_their_batch(trial: Callable[..., Trial]) -> None:
    """No other worker gets the locked jobs, although others have nothing to do."""
    with trial("que-many", Database.POSTGRES, batch=2).fresh() as queue:
        queue.strategy.enqueue([Job("1"), Job("2"), Job("3")])
        first = Hand(queue, holds=True).start()
        assert first.at_work.wait(LONG)
        assert alone(queue) == ["3"]
        assert queue.strategy.left() == 2
        first.join()
    assert first.worked == ["1", "2"]
    assert len(first.shift.told().claims) == 1


def alone(queue: Queue) -> list[str]:
    """What a worker finds now."""
    hand = Hand(queue).start()
    hand.join()
    return hand.worked
