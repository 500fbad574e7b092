"""The fixtures of all tests. In this order: the report reads what the others found."""

pytest_plugins = [
    "tests.fixtures.postgres",
    "tests.fixtures.stores",
    "tests.fixtures.report",
]
