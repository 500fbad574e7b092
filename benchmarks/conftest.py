"""The tests of benchmarks use what Rota's tests do, PostgreSQL servers above all."""

from tests.conftest import pytest_plugins

__all__ = ["pytest_plugins"]
