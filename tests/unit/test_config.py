"""A worker's settings."""

import pytest

from rota import ConfigError, WorkerConfig


def test_queues_are_no_text() -> None:
    """A text is a sequence, too: the worker would serve the queues m, a, i and l."""
    with pytest.raises(ConfigError, match=r"queues: must be a tuple .* such as \('mail',\)"):
        WorkerConfig(queues="mail")  # type: ignore[arg-type]
