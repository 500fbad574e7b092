"""What the doctor is told of flows by PostgreSQL, where deciding comes after the commit."""

import pytest

from rota.store.postgres import health
from tests.store.flowing import Flowing, node
from tests.store.postgres.database import Database
from tests.store.postgres.examining import look


def test_what_was_passed_by(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """All jobs of a node have ended, and a look at what is to be decided has come and gone."""
    monkeypatch.setattr(health, "OPEN", -1.0)
    flowing = Flowing(db.store, db.own, node("a"))
    flowing.claim()
    flowing.settle(*flowing.jobs("a"))

    def passed_by() -> bool:
        [one] = look(db).work.nodes
        assert one.left == 0
        return one.passed_by

    # A settler, or the next look, is about to decide.
    assert not passed_by()
    # A mark without a decision, which there is not but for a defect.
    db.sql(
        "INSERT INTO rota.flow_mark SELECT max(seq) + 1, pg_current_snapshot() FROM rota.flow_mark"
    )
    assert passed_by()
    flowing.decide()
    assert look(db).work.nodes == ()
