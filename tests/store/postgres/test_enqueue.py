"""Appending many jobs, which may take several statements."""

import pytest

from rota.errors import StoreError
from rota.model.job import JobSpec, Order
from rota.store.postgres import enqueue
from tests.store.postgres.database import Database


def test_all_or_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last statement is refused, nothing is left of those before it."""
    monkeypatch.setattr(enqueue, "CHUNK", 2)
    args = ["{}", "{}", "this is no JSON"]
    with pytest.raises(StoreError):
        db.own.run(db.store.enqueue(Order(JobSpec("shop.send"), args)))
    assert db.one("SELECT count(*) FROM rota.log") == 0
