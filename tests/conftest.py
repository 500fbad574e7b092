"""The fixtures of all tests. In this order: the report reads what the others found."""

import signal

from hypothesis import settings

# Where the tests run in the background of a shell, SIGINT is ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no fault of an example's.
settings.register_profile("rota", deadline=None)
settings.load_profile("rota")

pytest_plugins = [
    "tests.fixtures.garbage",
    "tests.fixtures.large",
    "tests.fixtures.logs",
    "tests.fixtures.postgres",
    "tests.fixtures.stores",
    "tests.fixtures.others",
    "tests.fixtures.brokers",
    "tests.fixtures.browser",
    "tests.fixtures.first",
    "tests.fixtures.progress",
    "tests.fixtures.report",
    "pytester",
]
