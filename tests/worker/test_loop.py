"""The loop of a worker's threads: what it does about errors that pass, and about others."""

import logging
import threading
from collections.abc import Callable, Iterator

import pytest

from rota.dispatch import Events
from rota.errors import ConfigError, PoolerUnannounced, RotaError, SchemaMissing, StoreUnavailable
from rota.log import Log
from rota.worker import loop

LONG = 20.0


class Steps:
    """Steps that end as they are told to; after the last one, the loop stops."""

    def __init__(self, *ends: RotaError | None) -> None:
        self.stopping = threading.Event()
        self.refusals: list[RotaError] = []
        self._ends: Iterator[RotaError | None] = iter(ends)
        self.left = len(ends)

    def run(self) -> None:
        """Let the loop take all of them."""
        events = Events()
        Log(events)
        thread = loop.repeat("claimer", self._step, self.stopping, events, self.refusals.append)
        thread.join(LONG)
        assert not thread.is_alive()

    def _step(self) -> None:
        self.left -= 1
        if not self.left:
            self.stopping.set()
        if (error := next(self._ends)) is not None:
            raise error


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once."""
    monkeypatch.setattr(loop, "LONGEST_PAUSE", 0.001)


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What was warned of."""
    caplog.set_level(logging.WARNING, "rota")
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("error", [ConfigError("permission denied"), SchemaMissing("no tables")])
def test_refused_at_the_start(error: RotaError) -> None:
    """What is refused for good, and never was possible, is handed on, and not tried again."""
    steps = Steps(error, None)
    steps.run()
    assert steps.refusals == [error]
    assert steps.left == 1


def test_refused_for_the_urls_sake() -> None:
    """What comes from the URL does not pass, however often it went well."""
    error = PoolerUnannounced("add pooler=transaction to the URL")
    steps = Steps(None, None, error, None)
    steps.run()
    assert steps.refusals == [error]
    assert steps.left == 1


def test_out_of_reach_at_the_start(warnings: Callable[[], list[str]]) -> None:
    """A database that may come back is waited for."""
    away = StoreUnavailable("away")
    steps = Steps(away, away, None)
    steps.run()
    assert steps.refusals == []
    assert warnings() == ["claimer: away", "claimer: the database answers again"]


@pytest.mark.parametrize(("every", "lines"), [(60.0, 1), (0.0, 3)])
def test_refused_later(
    monkeypatch: pytest.MonkeyPatch, warnings: Callable[[], list[str]], every: float, lines: int
) -> None:
    """What was possible before may be so again: it goes on, and says so now and then."""
    monkeypatch.setattr(loop, "REMINDER", every)
    denied = ConfigError("permission denied")
    steps = Steps(None, denied, denied, denied)
    steps.run()
    assert steps.refusals == []
    assert warnings() == ["claimer: permission denied"] * lines
