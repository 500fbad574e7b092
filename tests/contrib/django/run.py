"""Runs the suite with Django's own runner, in a process of its own: settings are once and for all.

    python -m tests.contrib.django.run [--psycopg2] [MODULE.Class.test …]

The database is that of SHOP_DATABASE_URL; on PostgreSQL Django makes a test database beside it.
"""

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
SUITE = "tests.contrib.django.suite"


def main(arguments: list[str]) -> int:
    """Run them; how many failed."""
    sys.path.insert(0, str(HERE.parents[2] / "examples" / "django_shop"))
    os.environ["DJANGO_SETTINGS_MODULE"] = f"{SUITE}.settings"
    warnings.simplefilter("error", ResourceWarning)
    if "--psycopg2" in arguments:
        _hide_psycopg()
    import django
    from django.conf import settings
    from django.db import connection
    from django.test.utils import get_runner

    django.setup()
    chosen = [f"{SUITE}.{name}" for name in arguments if not name.startswith("-")]
    chosen = chosen or sorted(f"{SUITE}.{path.stem}" for path in HERE.glob("suite/test_*.py"))
    driver = connection.Database.__name__
    print(  # noqa: T201 - which ones were tested
        f"Django {django.get_version()}, {driver}, Python {sys.version.split()[0]}", file=sys.stderr
    )
    return int(get_runner(settings)(verbosity=1, interactive=False).run_tests(chosen))


def _hide_psycopg() -> None:
    """Let Django take psycopg2, which it does where psycopg 3 is not installed."""
    sys.modules["psycopg"] = None  # type: ignore[assignment]
    import django.db.backends.postgresql.base  # noqa: F401

    del sys.modules["psycopg"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
