"""Options of jobs, names, and settings of workers."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.config import WorkerConfig
from rota.errors import ConfigError
from rota.model.limit import MOST, Limit
from rota.model.options import JobOptions
from rota.model.unique import Unique

AT = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "wrong",
    [
        {"queue": ""},
        {"queue": "x" * 201},
        {"queue": "a\nb"},
        {"queue": " "},
        {"queue": " mail"},
        {"queue": "mail\t"},
        {"queue": None},
        {"priority": 40_000},
        {"priority": 1.5},
        {"priority": True},
        {"max_attempts": 0},
        {"timeout": 0},
        {"timeout": -1},
        {"delay": "soon"},
        {"delay": float("inf")},
        {"at": datetime(2030, 1, 1)},  # noqa: DTZ001 - naive on purpose
        {"at": AT, "delay": 5},
    ],
)
def test_refused(wrong: dict[str, Any]) -> None:
    """An impossible option is refused at once."""
    with pytest.raises(ConfigError):
        JobOptions(**wrong)


@pytest.mark.parametrize("name", ["running", "per_second", "per_minute", "per_hour"])
def test_limits(name: str) -> None:
    """Numbers that both databases hold are possible."""
    for number in (1, MOST):
        assert getattr(Limit(**{name: number}), name) == number  # type: ignore[arg-type]
    for wrong in (0, 1.5, True, "1", MOST + 1, 2**70):
        with pytest.raises(
            ConfigError, match=rf"Limit\({name}=…\): must be a whole number from 1 to"
        ):
            Limit(**{name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("by", None),
        ("by", 5),
        ("by", "order"),
        ("by", (1,)),
        ("by", {"order"}),
        ("while_", None),
        ("while_", 5),
        ("while_", "waiting"),
        ("while_", ()),
        ("while_", ("running",)),
        ("while_", [["waiting"]]),
        ("on_conflict", None),
        ("on_conflict", []),
        ("on_conflict", "wait"),
        ("period", 0),
        ("cap", 5),
    ],
)
def test_bad_unique(name: str, value: Any) -> None:
    """An impossible value, of whatever type, is refused by the option's name."""
    with pytest.raises(ConfigError, match=rf"Unique\({name}=…\)"):
        Unique(**{name: value})


def test_using() -> None:
    """The later of two moments counts, all else stays, and a typing error is found."""
    options = JobOptions(queue="mail", delay=5).using({"at": AT})
    assert (options.queue, options.delay, options.at) == ("mail", None, AT)
    assert options.using({"delay": timedelta(seconds=1)}).spec("task").delay == 1.0
    with pytest.raises(
        ConfigError,
        match=r"unknown option prioritty; did you mean priority\? the options are at, delay",
    ):
        options.using({"prioritty": 1})


def test_a_name_beside_the_options() -> None:
    """The message has names that the caller takes itself."""
    with pytest.raises(
        ConfigError, match=r"unknown option con; did you mean conn\? the options are at, conn,"
    ):
        JobOptions().using({"con": 1}, "conn")


def test_no_delay_is_no_delay() -> None:
    """A delay of nothing makes the job available at once."""
    assert not JobOptions(delay=0).spec("task").later
    assert JobOptions(delay=0.001).spec("task").later


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"concurrency": 2.5},
        {"processes": -1},
        {"prefetch": -1},
        {"poll": 0},
        {"session_timeout": 0.5},
        {"grace": -1},
        {"queues": ("",)},
        {"queues": (" ",)},
    ],
)
def test_worker_settings(wrong: dict[str, Any]) -> None:
    """Impossible settings of a worker are refused."""
    with pytest.raises(ConfigError):
        WorkerConfig(**wrong)


def test_heartbeats_fit_into_the_timeout() -> None:
    """Several renewals may fail before others take the jobs over."""
    config = WorkerConfig(session_timeout=10)
    assert config.session_timeout / config.heartbeat >= 3
    assert WorkerConfig(concurrency=1).children == 1


def test_periods() -> None:
    """Each has keys of its own, taken until the next one begins."""
    minutely = Unique(period=60)
    (first,), until = minutely.in_period(["a"], 60.0)
    assert minutely.in_period(["a"], 119.9) == ([first], until)
    (second,), _ = minutely.in_period(["a"], 120.0)
    assert len({"a", first, second}) == 3
    assert until == datetime(1970, 1, 1, 0, 2, tzinfo=UTC)
    assert Unique().in_period(["a"], 60.0) == (["a"], None)
