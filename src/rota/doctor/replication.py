"""Logical replication of Rota's tables: what leaves this database, and what comes into it."""

from rota.doctor.finding import Finding, Severity
from rota.doctor.schema import identifier
from rota.store.health import PostgresFacts, ReplicationFacts


def judge(facts: PostgresFacts) -> list[Finding]:
    """One finding for each publication and subscription that has tables of Rota's."""
    return [
        _published(found) if found.kind == "publication" else _received(found)
        for found in facts.replication
    ]


def _published(publication: ReplicationFacts) -> Finding:
    name = identifier(publication.name)
    if publication.all_tables:
        step = f"DROP PUBLICATION {name}; CREATE PUBLICATION {name} FOR TABLES IN SCHEMA public;"
        more = " PostgreSQL 14 wants a list: FOR TABLE. Name all schemas that are yours."
    elif publication.tables:
        tables = ", ".join(f"rota.{table}" for table in publication.tables)
        step, more = f"ALTER PUBLICATION {name} DROP TABLE {tables};", ""
    else:
        step, more = f"ALTER PUBLICATION {name} DROP TABLES IN SCHEMA rota;", ""
    return Finding(
        Severity.WARNING,
        "replication",
        f"Publication {publication.name} replicates Rota's tables",
        "Jobs run as ever, but each change to their tables is sent, each TRUNCATE empties the copy's "
        "table and ends its queries, and deleting a job by hand stops a subscriber, which cannot "
        "compare JSON. The copy is not a working queue: sequences are not replicated. Leave the schema rota out, "
        f"and move jobs with pg_dump --schema=rota.{more} Then, at the subscriber: "
        "ALTER SUBSCRIPTION … REFRESH PUBLICATION.",
        step,
    )


def _received(subscription: ReplicationFacts) -> Finding:
    name = identifier(subscription.name)
    return Finding(
        Severity.WARNING,
        "replication",
        f"Subscription {subscription.name} writes into Rota's tables",
        "A worker here would run the jobs of another database, and its writes would collide with the "
        "subscription's. Before the first worker starts here, stop those there, and end the subscription.",
        f"DROP SUBSCRIPTION {name};",
    )
