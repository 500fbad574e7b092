"""What article 2 says of updates with a subselect, and what of it is still so."""

from collections.abc import Callable
from contextlib import closing
from typing import Any, LiteralString

import pytest

from rota_lab.databases import Database
from rota_lab.queue import Queue, Trial
from rota_lab.strategies.for_update_subselect import ForUpdateSubselect, UnlockedSubselect
from rota_lab.strategy import Job, Strategy
from tests.fixtures.workers import until
from tests.lab.bystander import Bystander, Hand

pytestmark = pytest.mark.postgres


class Checked(UnlockedSubselect):
    """The article's third form: the update has the condition too."""

    def _update(self) -> Any | None:
        return self.db.row(
            "update queue set is_done = 't' where itemid = ("
            " select itemid from queue where not is_done order by itemid limit 1"
            ") and not is_done returning *"
        )


@pytest.mark.parametrize(
    ("design", "end", "worked"),
    [
        # The article: "the second actually gets zero rows". It gets the next one.
        (ForUpdateSubselect, "commit", ["2"]),
        # "If the first xact to get the lock rolls back the second gets the row".
        (ForUpdateSubselect, "rollback", ["1", "2"]),
        # "The second will also mark the already-completed row and return it".
        (UnlockedSubselect, "commit", ["1", "2"]),
        (UnlockedSubselect, "rollback", ["1", "2"]),
        # "One waits for the other and then returns zero rows": it goes, and the second job stays.
        (Checked, "commit", []),
        (Checked, "rollback", ["1", "2"]),
    ],
)
def test_who_has_waited(
    design: type[Strategy],
    end: LiteralString,
    worked: list[str],
    trial: Callable[..., Trial],
) -> None:
    """What a worker gets that has waited for another one's first row."""
    with trial("for-update-subselect", Database.POSTGRES).fresh() as made:
        queue = Queue(design(made.location))
        with closing(queue), closing(Bystander(queue)) as bystander:
            queue.strategy.enqueue([Job("1"), Job("2")])
            with closing(queue.location.connect()) as other:
                other.begin()
                other.execute("update queue set is_done = 't' where itemid = 1")
                hand = Hand(queue).start()
                until(lambda: bystander.waiting() == 1, "the worker to wait")
                other.execute(end)
            hand.join()
            assert hand.worked == worked
