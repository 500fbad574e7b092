"""The rights that the page names for producers are enough for them, and each is needed."""

import re
import secrets
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import psycopg
import pytest

from rota import Limit, Unique
from rota.errors import ConfigError, JobExists, RotaError
from rota.model.job import JobSpec, Keys, Order
from rota.store.migrate import check
from rota.store.postgres.store import PostgresStore
from tests.store.postgres.database import Database

PAGE = Path(__file__).parents[3] / "docs" / "operate" / "tables.md"
GRANTS = re.findall(
    r"^GRANT ([^;]*?) ON ([^;]*?) TO producer;$", PAGE.read_text("utf-8"), re.MULTILINE
)
RIGHTS = [
    pair
    for rights, objects in GRANTS
    for pair in product(rights.split(", "), re.split(r",\s+", objects))
]
"""Each right on each object."""

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def role(db: Database) -> Iterator[str]:
    """A role with all that the page grants, and tables that are newer than the code."""
    db.sql("INSERT INTO rota.schema_version (version) VALUES (999)")
    name = f"producer_{secrets.token_hex(4)}"
    db.sql(f"CREATE ROLE {name}")
    for right, what in RIGHTS:
        db.sql(f"GRANT {right} ON {what} TO {name}")
    yield name
    db.sql(f"DROP OWNED BY {name}")
    db.sql(f"DROP ROLE {name}")


def orders(queue: str) -> Iterator[Order]:
    """Jobs of all kinds, in their order."""

    def spec(**options: object) -> JobSpec:
        return JobSpec("shop.send", queue, **options)  # type: ignore[arg-type]

    for count in (1, 1, 3, 300):
        yield Order(spec(), ["{}"] * count)
    for later in ({"delay": 60.0}, {"at": NOW + HOUR}, {"at": NOW - HOUR}):
        yield Order(spec(**later), ["{}"] * 2)
    for limit in (Limit("{k}", running=1), Limit("{k}", running=2), Limit("{k}", per_hour=1)):
        yield Order(spec(limit=limit), ["{}"], Keys(limit=[f"{queue} limited"]))
    yield Order(spec(), ["{}"], Keys(fair=["a tenant"]))
    for conflict, delay in product(("skip", "replace", "debounce"), (None, 60.0)):
        if delay or conflict != "debounce":
            unique = spec(unique=Unique(on_conflict=conflict), delay=delay)
            for names in (["a"], ["a"], ["a", "b"]):
                keys = [f"{queue} {conflict} {delay} {name}" for name in names]
                yield Order(unique, ["{}"] * len(keys), Keys(unique=keys))
    raising = spec(unique=Unique(on_conflict="raise"))
    yield Order(raising, ["{}"] * 2, Keys(unique=[f"{queue} new", f"{queue} skip None a"]))


def enqueue_everything(db: Database, role: str, queue: str) -> None:
    """Jobs of all kinds in a new queue, by Rota, and in a transaction of a caller's."""
    separator = "&" if "?" in db.url else "?"
    url = f"{db.url}{separator}options=-c%20role%3D{role}"
    with closing(PostgresStore(url)) as store, closing(store.connect()) as own:
        check(store, own)
        for order in orders(queue):
            with suppress(JobExists):
                own.run(store.enqueue(order))
    with psycopg.connect(url) as raw:
        db.inside(raw, db.store.enqueue(Order(JobSpec("shop.send", f"{queue}, too"), ["{}"])))


def test_they_are_enough(db: Database, role: str) -> None:
    """A role with them enqueues jobs of all kinds, and can do nothing else."""
    enqueue_everything(db, role, "new")
    with psycopg.connect(db.url) as raw:
        raw.execute(f"SET ROLE {role}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            raw.execute("SELECT FROM rota.lease")


@pytest.mark.large
def test_each_is_needed(db: Database, role: str) -> None:
    """Without any one of them something is refused."""
    assert len(RIGHTS) > 30
    # Which segment is the current one decides over the others.
    superfluous = []
    for number, (right, what) in enumerate(RIGHTS):
        if what in {"rota.log_1", "rota.log_2", "rota.log_3"}:
            continue
        db.sql(f"REVOKE {right} ON {what} FROM {role}")
        try:
            enqueue_everything(db, role, f"queue {number}")
        except (RotaError, ConfigError, psycopg.Error):
            pass
        else:
            superfluous.append((right, what))
        db.sql(f"GRANT {right} ON {what} TO {role}")
    assert superfluous == []
