"""Which setting of a queue counts, and what can be set."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import ConfigError
from rota.model.durations import parse, written
from rota.model.queue_settings import (
    FOREVER,
    NAMES,
    NOTHING,
    QueueSettings,
    believed,
    retention,
    sources,
)

ANY = st.builds(
    QueueSettings,
    completed=st.none() | st.floats(0, 1e6),
    cancelled=st.none() | st.floats(0, 1e6),
    discarded=st.none() | st.floats(0, 1e6) | st.just(FOREVER),
    max_attempts=st.none() | st.integers(1, 100),
    timeout=st.none() | st.floats(0.1, 1e6),
    concurrency=st.none() | st.integers(1, 100),
)


@given(st.lists(ANY, min_size=1, max_size=5))
def test_the_first_layer_that_says_it_counts(layers: list[QueueSettings]) -> None:
    """Each setting is taken from the first layer that has it, and its source is that layer."""
    found = believed(*layers)
    whose = sources({str(number): layer for number, layer in enumerate(layers)})
    for name in NAMES:
        said = [getattr(layer, name) for layer in layers]
        expected = next((value for value in said if value is not None), None)
        assert getattr(found, name) == expected
        assert (name in whose) is (expected is not None)
        if expected is not None:
            assert all(value is None for value in said[: int(whose[name])])


def test_nothing_is_set() -> None:
    """Then nothing counts, and nothing has a source."""
    assert believed() == believed(NOTHING, NOTHING) == NOTHING
    assert sources({"one": NOTHING}) == {}


def test_a_retention() -> None:
    """A duration is for completed and cancelled jobs; a mapping names the states."""
    assert retention(None, "retention") == {}
    assert retention(timedelta(hours=1), "retention") == {"completed": 3600, "cancelled": 3600}
    assert retention({"discarded": 5, "completed": 0}, "retention") == {
        "discarded": 5,
        "completed": 0,
    }
    assert retention({"discarded": FOREVER}, "retention") == {"discarded": FOREVER}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (-1, "retention"),
        ("1d", "retention"),
        (FOREVER, "retention"),
        ({"running": 5}, "only cancelled, completed, discarded jobs are kept, not 'running'"),
        ({"done": 5}, "'done'"),
        ({"completed": FOREVER}, "completed"),
        ({"discarded": -1}, "discarded"),
    ],
)
def test_no_retention(value: Any, words: str) -> None:
    """Impossible durations and states are refused."""
    with pytest.raises(ConfigError, match=words):
        retention(value, "retention")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"concurrency": 0}, "rota queues pause"),
        ({"concurrency": 1.5}, "whole number"),
        ({"concurrency": True}, "whole number"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"timeout": 0}, "more than 0 seconds"),
        ({"timeout": -1}, "timeout"),
        ({"completed": -1}, "retention of completed jobs"),
        ({"completed": FOREVER}, "retention of completed jobs"),
        ({"discarded": float("nan")}, "retention of discarded jobs"),
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, Any], words: str) -> None:
    """A value outside its range is refused by its name."""
    with pytest.raises(ConfigError, match=words):
        QueueSettings(**wrong)


@given(st.integers(0, 10**9) | st.floats(0.001, 10**6).map(lambda number: round(number, 3)))
def test_durations_are_written_as_they_are_read(seconds: float) -> None:
    """A written duration is read as the same number of seconds."""
    assert parse(written(seconds), "it") == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.5, "0.5s"), (30, "30s"), (90, "90s"), (600, "10m"), (5400, "90m"),
     (7200, "2h"), (86_400, "1d"), (129_600, "36h"), (FOREVER, "forever")],
)  # fmt: skip
def test_durations_in_writing(seconds: float, text: str) -> None:
    """The largest unit that needs no fraction."""
    assert written(seconds) == text
