"""When the mark of a backend counts."""

from collections.abc import Callable
from contextlib import closing

import pytest

from rota_lab.databases import Database
from rota_lab.queue import Trial
from rota_lab.shift import Failed, Shift
from rota_lab.strategy import Job
from tests.fixtures.workers import until
from tests.lab.bystander import Bystander, Hand

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize(("late", "worked"), [(True, ["3"]), (False, [])])
def test_a_backend_that_has_just_come(
    worked: list[str], trial: Callable[..., Trial], *, late: bool
) -> None:
    """Its mark does not count for a claim that has looked at the backends before it came."""
    with (
        trial("claimed-by-pid", Database.POSTGRES).fresh() as queue,
        closing(Bystander(queue)) as bystander,
        closing(queue.location.connect()) as holding,
    ):
        queue.strategy.enqueue([Job("1"), Job("2"), Job("3")])
        # The claim looks at the backends for the first row, and waits for the second one.
        holding.execute("update queue set processed_by = pg_backend_pid() where job = '1'")
        holding.begin()
        holding.execute("delete from queue where job = '2'")
        if not late:
            early = queue.location.connect()
        hand = Hand(queue).start()
        until(lambda: bystander.waiting() == 1, "the claim to wait for the second row")
        with closing(queue.location.connect() if late else early) as other:
            other.begin()
            other.rows("select from queue where job = '3' for update")
            [pid] = other.rows("select pg_backend_pid() as own")
            holding.execute("commit")
            blocked = "select from pg_stat_activity where %s = any(pg_blocking_pids(pid))"
            until(lambda: holding.rows(blocked, pid.own), "the claim to wait for the third row")
            other.execute("update queue set processed_by = pg_backend_pid() where job = '3'")
            other.execute("commit")
            hand.join()
            assert hand.worked == worked


def test_what_fails_is_free_again(trial: Callable[..., Trial]) -> None:
    """As when the article's script dies: its backend is gone."""

    def fail(_text: str) -> None:
        raise Failed

    with (
        trial("claimed-by-pid", Database.POSTGRES).fresh() as queue,
        closing(Bystander(queue)) as bystander,
    ):
        queue.strategy.enqueue([Job("1")])
        before = bystander.sessions()
        with pytest.raises(Failed):
            queue.strategy.step(Shift(fail))
        until(lambda: bystander.sessions() < before, "the server to notice")
        hand = Hand(queue).start()
        hand.join()
        assert hand.worked == ["1"]
