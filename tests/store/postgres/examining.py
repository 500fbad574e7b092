"""What the doctor sees of a test's database."""

from contextlib import closing

from rota.doctor.examine import examine
from rota.doctor.finding import Finding, Severity
from rota.store.health import HolderFacts, PostgresFacts
from rota.store.postgres.store import PostgresStore
from tests.store.postgres.database import Database


def facts_of(store: PostgresStore) -> PostgresFacts:
    """All facts, by a connection of their own."""
    with closing(store.connect()) as connection:
        facts = connection.run(store.health())
    assert isinstance(facts, PostgresFacts)
    return facts


def look(db: Database) -> PostgresFacts:
    """All facts of a test's database; every part was to be seen."""
    facts = facts_of(db.store)
    assert facts.unseen == {}
    return facts


def findings(db: Database, subject: str) -> list[Finding]:
    """What the doctor finds to be wrong about one subject."""
    with closing(db.store.connect()) as connection:
        found = examine(db.store, connection).findings
    return [
        finding
        for finding in found
        if finding.subject == subject and finding.severity > Severity.OK
    ]


def held(db: Database, name: str) -> HolderFacts | None:
    """What is known of a holder by its name."""
    return next((holder for holder in look(db).holders if holder.name == name), None)
