"""Appending many jobs, which may take several statements."""

from itertools import pairwise
from typing import SupportsIndex

import pytest

from rota.errors import StoreError
from rota.model.job import JobId, JobSpec, Keys, Order
from rota.model.unique import Unique
from rota.store.postgres import copying, enqueue
from tests.store.postgres.database import Database


def test_all_or_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last statement is refused, nothing is left of those before it."""
    monkeypatch.setattr(enqueue, "CHUNK", 2)
    args = ["{}", "{}", "this is no JSON"]
    with pytest.raises(StoreError):
        db.own.run(db.store.enqueue(Order(JobSpec("shop.send"), args)))
    assert db.one("SELECT count(*) FROM rota.log") == 0


@pytest.mark.parametrize("step", [1, 2])
def test_ids_with_gaps(db: Database, step: int) -> None:
    """Each job that is copied has the id that is given for it, also where others take ids in between."""
    db.admin.execute(f"ALTER SEQUENCE rota.job_id INCREMENT {step}")
    args = [f"{number}" for number in range(300)]
    jobs = db.own.run(db.store.enqueue(Order(JobSpec("shop.send"), args)))
    assert [later - job for job, later in pairwise(jobs)] == [step] * 299
    assert [record.args for record in db.own.run(db.store.get(jobs))] == args
    unique = JobSpec("shop.send", unique=Unique(by=("n",)))
    keyed = db.own.run(db.store.enqueue(Order(unique, args, Keys(unique=args))))
    assert [record.args for record in db.own.run(db.store.get(keyed))] == args


class Watched(list[str]):
    """Args that know how many of them were read."""

    read = 0

    def __getitem__(self, at: SupportsIndex | slice) -> str | list[str]:  # type: ignore[override]
        found = super().__getitem__(at)
        self.read += len(found) if isinstance(at, slice) else 1
        return found


def test_blocks_are_made_one_after_the_other() -> None:
    """The rows of a block are made when those before it are on their way."""
    args = Watched(["1", "2"] * 1000)
    jobs = list(map(JobId, range(len(args))))
    blocks = copying.blocks(jobs, "\t-\t", args)
    assert next(blocks).startswith("0\t-\t1\n1\t-\t2\n")
    assert args.read <= 500
    assert sum(1 for _ in blocks) >= 3
