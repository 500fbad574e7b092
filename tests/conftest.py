"""The fixtures of all tests. In this order: the report reads what the others found."""

import signal

# Where the tests run in the background of a shell, SIGINT is ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "tests.fixtures.large",
    "tests.fixtures.postgres",
    "tests.fixtures.stores",
    "tests.fixtures.others",
    "tests.fixtures.first",
    "tests.fixtures.progress",
    "tests.fixtures.report",
]
