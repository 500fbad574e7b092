"""Amounts of memory as users write them."""

import pytest

from rota import ConfigError, WorkerConfig
from rota.model.sizes import megabytes, parse


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("500MB", 500 * 1024**2),
        ("2GB", 2 * 1024**3),
        (" 1.5 gb ", 3 * 512 * 1024**2),
        ("1kB", 1024),
    ],
)
def test_sizes(text: str, size: int) -> None:
    """A number and a unit; a kB is 1,024 bytes."""
    assert parse(text, "--max-memory") == size


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("500", "500 has no unit; write 500MB or 500GB"),
        ("0MB", "an amount such as 500MB"),
        ("-1MB", "must be an amount such as 500MB or 2GB"),
        ("lots", "not 'lots'"),
        ("5TB", r"\(kB, MB, GB\), not '5TB'"),
    ],
)
def test_what_is_no_size(text: str, why: str) -> None:
    """Anything else is refused, with what to write."""
    with pytest.raises(ConfigError, match=f"^--max-memory: .*{why}"):
        parse(text, "--max-memory")


def test_megabytes() -> None:
    """As log lines have them."""
    assert megabytes(parse("731MB", "it")) == "731 MB"


@pytest.mark.parametrize("field", ["max_jobs", "max_memory"])
@pytest.mark.parametrize("value", [0, True, 1.5, "500MB"])
def test_what_a_config_refuses(field: str, value: object) -> None:
    """In the code both are whole numbers."""
    with pytest.raises(ConfigError, match=f"{field}: must be a whole number of at least 1"):
        WorkerConfig(**{field: value})  # type: ignore[arg-type]
