"""Workers write down each minute that is over."""

from datetime import timedelta
from functools import partial

import pytest

from rota import Rota
from rota.store.operation import Operation
from tests.fixtures.workers import until, working
from tests.store.factories import minutes_pass


def test_a_worker_writes_minutes_down(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look records a minute that is over, and what happened in it; no look asks for it again."""
    store = app.database.store
    recorded = []
    real = store.history.record

    def record() -> Operation[bool]:
        recorded.append(1)
        return real()

    monkeypatch.setattr(store.history, "record", record)

    @app.task(name="nothing")
    async def nothing() -> None: ...

    def minutes(count: int) -> bool:
        return len(app.admin.history(since=timedelta(hours=1))) >= count

    with working(app, poll=0.02):
        until(partial(minutes, 1), "the first minute")
        nothing.enqueue()
        until(lambda: app.admin.queues()[0].claimed == 1, "a claim")
        with store.lent() as connection:
            minutes_pass(store, connection)
        until(partial(minutes, 2), "another minute")
    found = app.admin.history(since=timedelta(hours=1))
    assert sum(point.appended for point in found) == 1
    # A minute may have ended meanwhile.
    assert len(recorded) <= len(found) + 1
