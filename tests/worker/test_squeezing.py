"""When a worker brings the totals of the counters up to date."""

from functools import partial
from typing import Any

import pytest

from rota import Rota, State
from rota.store.operation import Operation
from rota.worker import upkeep
from tests.fixtures.workers import until, working


class Calls:
    """How often the operations of a store were asked for, by their names."""

    def __init__(self, app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = {"squeeze": 0, "look": 0}
        for name in self.made:
            real = getattr(app.database.store, name)

            def call(
                *args: Any, name: str = name, real: Any = real, **named: Any
            ) -> Operation[Any]:
                self.made[name] += 1
                operation: Operation[Any] = real(*args, **named)
                return operation

            monkeypatch.setattr(app.database.store, name, call)

    def rounds(self, count: int) -> None:
        """Wait for so many more rounds of upkeep."""
        end = self.made["look"] + count
        until(lambda: self.made["look"] >= end, "upkeep to go round")


def test_a_worker_squeezes_after_work_alone(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once after jobs were claimed, and never while there is nothing to do."""
    monkeypatch.setattr(upkeep, "SQUEEZE", 0.0)
    calls = Calls(app, monkeypatch)

    @app.task(name="nothing")
    async def nothing() -> None: ...

    with working(app, poll=0.02):
        calls.rounds(5)
        assert calls.made["squeeze"] == 0
        for times in (1, 2):
            nothing.enqueue()
            until(lambda times=times: calls.made["squeeze"] >= times, "a squeeze")  # type: ignore[misc]
            calls.rounds(5)
            assert calls.made["squeeze"] == times
    [queue] = app.database.run(app.database.store.queues())
    assert queue.counts == {State.COMPLETED: 2}
    assert (queue.appended, queue.claimed) == (2, 2)


def test_not_more_often_than_it_must(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy worker squeezes now and then, not in every round."""
    monkeypatch.setattr(upkeep, "SQUEEZE", 3600.0)
    calls = Calls(app, monkeypatch)

    @app.task(name="nothing")
    async def nothing() -> None: ...

    with working(app, poll=0.02):
        for done in range(1, 4):
            nothing.enqueue()
            until(partial(claimed, app, done), "a claim")
            calls.rounds(3)
        assert calls.made["squeeze"] == 1


def claimed(app: Rota, count: int) -> bool:
    """Whether so many jobs have been claimed."""
    [queue] = app.database.run(app.database.store.queues())
    return queue.claimed == count
