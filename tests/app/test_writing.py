"""Many args, which are written as JSON while the server stores the jobs before them."""

from typing import Any

import msgspec
import pytest

from rota import ArgsError, JobId, Rota, Task
from rota.app.arguments import Alike
from rota.app.writing import LEAST, Unwritten
from rota.model.job import JobFilter

pytestmark = pytest.mark.both


@pytest.fixture
def keep(app: Rota) -> Task[..., Any, Any]:
    """A task that takes anything."""

    @app.task(name="keep")
    def keep(value: Any) -> None:
        del value

    return keep


def values(app: Rota) -> dict[JobId, Any]:
    """The arg of every job that is stored."""
    records = app.database.run(app.database.store.list_jobs(JobFilter(limit=5000)))
    return {job.id: msgspec.json.decode(job.args)["value"] for job in records}


def test_one_that_cannot_be_stored(app: Rota, keep: Task[..., Any, Any]) -> None:
    """It is named by its number, nothing is stored of those before it, and the next call is as ever."""
    good = [(number,) for number in range(2 * LEAST)]
    with pytest.raises(ArgsError, match=f"job {2 * LEAST} of enqueue_many: .*'keep'"):
        keep.enqueue_many([*good, (float("nan"),)])
    assert values(app) == {}
    # A block with one that needs a closer look is written job by job.
    some = [*range(2 * LEAST), 0.5, None, "back\\slash"]
    stored = keep.enqueue_many([(value,) for value in some])
    found = values(app)
    assert [found[job] for job in stored] == some


def test_in_a_callers_transaction(app: Rota, keep: Task[..., Any, Any]) -> None:
    """All are written before anything is sent there, so that it can go on where one cannot be stored."""
    with app.transaction() as tx:
        first = keep.enqueue(0, conn=tx)
        with pytest.raises(ArgsError, match=f"job {LEAST} of enqueue_many"):
            keep.enqueue_many([*((n,) for n in range(LEAST)), (float("nan"),)], conn=tx)
    assert values(app) == {first.id: 0}


def test_written_when_asked_for() -> None:
    """A part of them is written by itself, with the numbers that its jobs have in the call."""
    asked: list[tuple[int, int]] = []

    def write(jobs: Alike, first: int) -> list[str]:
        asked.append((first, len(jobs)))
        return [str(value) for ((value,), _) in jobs]

    texts = Unwritten(Alike(tuple((n,) for n in range(1000))), write)
    assert (len(texts), asked) == (1000, [])
    assert texts[500:502] == ["500", "501"]
    assert (texts[-1], texts[7]) == ("999", "7")
    assert asked == [(500, 2), (999, 1), (7, 1)]
    assert list(texts) == [str(n) for n in range(1000)]
