"""The cursor's holes stand in three statements of claims: one text, and no part of it can be missing."""

import re
from importlib.resources import files
from types import ModuleType

import pytest

from rota.model.job import JobId, JobSpec, Keys, Order
from rota.model.unique import Unique
from rota.store.operation import Statement
from rota.store.postgres import claim, claim_lanes
from tests.store.postgres.database import Database, Raw, ids

CLAIMS: dict[str, tuple[ModuleType, str]] = {
    "claim": (claim, "CLAIM"),
    "claim_keyed": (claim, "CLAIM_KEYED"),
    "claim_lanes": (claim_lanes, "CLAIM_LANES"),
}
HOLES = re.compile(
    r"-- The holes of the new cursor: begin(.*)-- The holes of the new cursor: end", re.DOTALL
)
COMMON_TABLE = re.compile(r"^(?:WITH|\),) (\w+) AS ", re.MULTILINE)

NEW_HOLES = (
    "UNION ALL SELECT running.xid, 0 FROM running"
    " WHERE running.xid > place.xid AND running.xid < reached.xid"
)
STILL_RUNNING = "NOT pg_visible_in_snapshot(hole.xid, pg_current_snapshot()) OR"
NOT_REACHED = "OR hole.xid >= cut.xid"
LAST_TAKEN = "WHEN hole.xid = cut.xid THEN cut.id"


def written(name: str) -> str:
    """A statement as it stands in its file."""
    file = files("rota.store.postgres") / "sql" / "claim" / f"{name}.sql"
    return file.read_text(encoding="utf-8")


def mutant(statement: Statement, part: str) -> Statement:
    """The statement without a part of its holes."""
    text = " ".join(statement.text.split())
    assert text.count(part) == 1
    rest = "WHEN false THEN 0" if part == LAST_TAKEN else ""
    return Statement(statement.name, text.replace(part, rest))


def put(db: Database, name: str, count: int, conn: Raw | None = None) -> list[JobId]:
    """Jobs of one lane whose claims take this statement."""
    if name == "claim":
        return db.enqueue(count, conn=conn)
    # No job with a unique key is like another one; all of one value of a fair share lie in one
    # lane.
    number = db.one("SELECT nextval('rota.job_id')")
    unique = name == "claim_keyed"
    spec = JobSpec("shop.send", unique=Unique() if unique else None)
    keys = Keys(unique=[f"{number} {of}" for of in range(count)])
    order = Order(spec, ["{}"] * count, keys if unique else Keys(fair=["x"] * count))
    operation = db.store.enqueue(order)
    return db.own.run(operation) if conn is None else db.inside(conn, operation)


def test_the_text_of_the_holes_is_the_same() -> None:
    """The three statements differ in its indentation alone, and it has all the parts named here."""
    [text] = {" ".join(part.split()) for name in CLAIMS for part in HOLES.findall(written(name))}
    assert all(part in text for part in (NEW_HOLES, STILL_RUNNING, NOT_REACHED, LAST_TAKEN))


def test_claims_with_unique_jobs_read_and_pass_what_others_do() -> None:
    """What leads to the holes is the same text in both statements for plain lanes."""
    parts = [COMMON_TABLE.split(written(name)) for name in ("claim", "claim_keyed")]
    plain, unique = (dict(zip(part[1::2], part[2::2], strict=True)) for part in parts)
    for table in ("ended", "taken", "reached", "cut", "running", "hole"):
        assert plain[table] == unique[table], table


@pytest.mark.parametrize("part", [None, NEW_HOLES, STILL_RUNNING, NOT_REACHED, LAST_TAKEN])
@pytest.mark.parametrize("name", CLAIMS)
def test_late_transactions(
    db: Database, monkeypatch: pytest.MonkeyPatch, name: str, part: str | None
) -> None:
    """Jobs of two transactions that commit late run once; without any part of the holes they do not."""
    if part is not None:
        db.try_no_light_claims()
        module, constant = CLAIMS[name]
        monkeypatch.setattr(module, constant, mutant(getattr(module, constant), part))
    put(db, name, 1)
    session = db.session()
    assert len(db.claim(session)) == 1
    first, second = db.bare(), db.bare()
    late = put(db, name, 3, first) + put(db, name, 2, second)
    # Two claims pass the open transactions: the second one must keep the holes of the first.
    for _ in range(2):
        passed = put(db, name, 2)
        assert ids(db.claim(session)) == passed
    first.commit()
    second.commit()
    # Claims of one job cut the holes short: what they leave stays, and what they took does not.
    found = [job for _ in range(6) for job in ids(db.claim(session, limit=1))]
    assert (found == late) is (part is None)
