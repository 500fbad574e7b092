"""Rota's plugin for pytest: the fixture `rota_test`, a test kit (see docs/guides/testing.md).

It is no part of the package `rota`, so that pytest can load it without importing that: a test run
that asks for no fixture of it pays nothing, and Rota is imported when the tests' own settings are
made.
"""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota import Rota
    from rota.testing import Kit, ShardKits


@pytest.fixture
def rota_connection() -> Any:
    """The connection or session of the test; override it, or call `rota_test.use(...)`."""
    return None


@pytest.fixture
def rota_app() -> "Rota | Any":
    """The app; override it where the process has more than one, or several databases are one app."""
    return None


@pytest.fixture
def rota_test(rota_connection: Any, rota_app: "Rota | Any") -> "Iterator[Kit | ShardKits]":
    """What a test can do with its transaction's jobs; a `ShardKits` if `rota_app` has shards."""
    from rota.testing import kit_of

    with kit_of(rota_connection, rota_app) as kit:
        yield kit
