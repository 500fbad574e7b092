"""Options of jobs, names, and settings of workers."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.config import WorkerConfig
from rota.errors import ConfigError
from rota.options import JobOptions

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
    """What cannot be meant is refused where it is said."""
    with pytest.raises(ConfigError):
        JobOptions(**wrong)


def test_using() -> None:
    """The later of two moments counts, all else stays, and a typing error is found."""
    options = JobOptions(queue="mail", delay=5).using({"at": AT})
    assert (options.queue, options.delay, options.at) == ("mail", None, AT)
    assert options.using({"delay": timedelta(seconds=1)}).spec("task").delay == 1.0
    with pytest.raises(ConfigError, match="unknown option prioritty; there are at, delay"):
        options.using({"prioritty": 1})


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
    """A worker is not started with settings that it could not keep."""
    with pytest.raises(ConfigError):
        WorkerConfig(**wrong)


def test_heartbeats_fit_into_the_timeout() -> None:
    """Several renewals may fail before others take the jobs over."""
    config = WorkerConfig(session_timeout=10)
    assert config.session_timeout / config.heartbeat >= 3
    assert WorkerConfig(concurrency=1).children == 1
