"""How long it will take, said before."""

import pytest

from rota.measure.bench.scale import expected, scale
from rota.measure.bench.scratch import Scratch
from rota.measure.bench.soak import soak
from rota.measure.bench.steady import Course
from rota.terminal.progress import Silent, about


class Stopping(Silent):
    """Notes the first estimate, and goes no further."""

    def __init__(self) -> None:
        self.expected = 0.0

    def expect(self, seconds: float) -> None:
        self.expected = seconds
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 seconds"), (59, "59 seconds"), (130, "2.2 minutes"), (3601, "60 minutes"),
     (7200, "2 hours")],
)  # fmt: skip
def test_words(seconds: float, words: str) -> None:
    """Durations are rough, in the unit that people use."""
    assert about(seconds) == words


def test_scale_adds_its_runs() -> None:
    """Each run rests and is watched; without a watch there is no rest either."""
    whole = expected((1, 2, 4, 8), (1, 32, 1000), 20_000, 5.0, 11.0)
    assert 12 * 16 < whole < 2 * 12 * 16
    assert whole - expected((1, 2, 4, 8), (1, 32, 1000), 20_000, 0.0, 11.0) == pytest.approx(192)


def test_scale_says_it_first() -> None:
    """The estimate comes before any database is made."""
    progress = Stopping()
    with pytest.raises(KeyboardInterrupt):
        scale(
            Scratch(server=None, folder=None), workers=(1,), lanes=(1,), jobs=10, idle_seconds=5.0,
            rest=11.0, progress=progress,
        )  # fmt: skip
    assert progress.expected > 16


def test_a_steady_load_says_it_first() -> None:
    """The estimate comes before the processes are started."""
    progress = Stopping()
    with pytest.raises(KeyboardInterrupt):
        soak(Scratch(server=None, folder=None), Course(600.0, 100.0, 10), progress)
    assert 602 < progress.expected < 620
