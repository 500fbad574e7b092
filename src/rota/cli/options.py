"""What commands have in common."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

LARGEST_ID = 2**63 - 1


def url_option(function: F) -> F:
    """`--url`, for commands that work on a database."""
    return click.option(
        "--url",
        metavar="URL",
        help="The database, such as postgresql:///shop or sqlite:///rota.db.  "
        "[default: ROTA_DATABASE_URL, else sqlite:///rota.db]",
    )(function)


def json_option(function: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def ids_argument(*, required: bool = True) -> Callable[[F], F]:
    """The ids of jobs."""
    return click.argument(
        "ids", metavar="ID...", nargs=-1, required=required, type=click.IntRange(1, LARGEST_ID)
    )
