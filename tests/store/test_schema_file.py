"""`schema.sql` makes what the migrations lead to, and a database of every older version comes to it."""

from contextlib import closing

import pytest

from rota.errors import SchemaOutdated
from rota.model.job import JobId
from rota.model.states import State
from rota.store.migrate import check, migrate, read_migrations
from rota.store.protocol import Store
from tests.store.factories import claim, enqueue, open_session, states
from tests.store.schema import described, differences, drop, make_old

STORES = ("sqlite", "postgres")
VERSIONS = [(name, [*read_migrations(f"rota.store.{name}")]) for name in STORES]

# As the very first versions wrote them: a job that waits, one that is due, and a discarded one.
OLD_JOBS = {
    "sqlite": """
        INSERT INTO rota_job (task, queue, priority, state, max_attempts, enqueued_at, scheduled_at,
                              finished_at, args)
        VALUES ('shop.send', 'default', 0, 'available', 5, 1e9, NULL, NULL, '{"number":1}'),
               ('shop.send', 'default', 0, 'scheduled', 5, 1e9, 1e9, NULL, '{"number":2}'),
               ('shop.send', 'default', 0, 'discarded', 5, 1e9, NULL, 1e9, '{"number":3}');
        INSERT INTO rota_count (queue, state, expires, jobs)
        VALUES ('default', 'appended', 9e999, 1), ('default', 'scheduled', 9e999, 1),
               ('default', 'discarded', 9e999, 1);""",
    "postgres": """
        INSERT INTO rota.queue (name) VALUES ('default');
        INSERT INTO rota.lane (queue, priority) VALUES ('default', 0);
        INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
        VALUES (0, 1, 0, '0', 0, 0, '{}', '{}');
        INSERT INTO rota.log (id, lane, segment, max_attempts, task, args)
        VALUES (nextval('rota.job_id'), 1, 0, 5, 'shop.send', '{"number":1}');
        INSERT INTO rota.timer (id, lane, run_at, max_attempts, task, args)
        VALUES (nextval('rota.job_id'), 1, '2001-09-09', 5, 'shop.send', '{"number":2}');
        INSERT INTO rota.finished (id, enqueued_at, keep_until, segment, priority, entry, attempt,
                                   max_attempts, state, queue, task, args)
        VALUES (nextval('rota.job_id'), '2001-09-09', 'infinity', -1, 0, 0, 5, 5, 'discarded',
                'default', 'shop.send', '{"number":3}');
        INSERT INTO rota.tally (slot, lane, state, jobs)
        VALUES (0, 1, 'scheduled', 1), (0, 1, 'discarded', 1);""",
}


def store_jobs(store: Store) -> None:
    """What an old Rota had stored."""
    transaction = store.transaction()
    for statement in OLD_JOBS[store.name].split(";"):
        transaction.connection.execute(statement)
    transaction.commit()


def test_the_file_makes_what_the_migrations_lead_to(empty_store: Store) -> None:
    """Both make the same tables, views, functions and first rows, down to the names of constraints."""
    assert differences(empty_store) == []


CHANGES = {
    "sqlite": (
        "DROP INDEX rota_job_kept",
        "CREATE INDEX rota_job_kept ON rota_job (keep_until) WHERE keep_until > 0",
        "ALTER TABLE rota_queue ADD COLUMN colour TEXT",
        "DROP VIEW rota_cron",
    ),
    "postgres": (
        "ALTER TABLE rota.log ALTER attempt SET DEFAULT 1",
        "ALTER TABLE rota.log_0 RESET (autovacuum_enabled)",
        "ALTER TABLE rota.timer RENAME CONSTRAINT timer_state_check TO states",
        "ALTER TABLE rota.finished_discarded ALTER args SET STORAGE EXTERNAL",
        "ALTER SEQUENCE rota.job_id CACHE 20",
        "GRANT SELECT ON rota.queue TO PUBLIC",
        "COMMENT ON TABLE rota.queue IS 'a queue'",
        "DROP INDEX rota.timer_xid",
        "CREATE OR REPLACE VIEW rota.lane_few AS SELECT last_value <= 2 AS few FROM rota.lane_id_seq",
        "ALTER FUNCTION rota.lock_waiting STABLE",
    ),
}


def test_the_comparison_sees_every_change(store: Store) -> None:
    """The mutants: tables that differ in anything are described in another way."""
    seen = [described(store)]
    for change in CHANGES[store.name]:
        transaction = store.transaction()
        transaction.connection.execute(change)
        transaction.commit()
        seen.append(described(store))
        assert seen[-1] != seen[-2], change


@pytest.mark.parametrize(
    ("store_url", "version"),
    [
        pytest.param(
            name,
            version,
            # The first one goes through all the others.
            marks=[pytest.mark.large] if name == "postgres" and version in versions[1:-3] else [],
        )
        for name, versions in VERSIONS
        for version in versions
    ],
    indirect=["store_url"],
)
def test_a_database_of_every_version(empty_store: Store, version: int) -> None:
    """It goes to the newest version step by step, has the tables of a new one, and its jobs go on."""
    store = empty_store
    [newest] = store.migrations()
    with closing(store.connect()) as connection:
        make_old(store, connection, version)
        store_jobs(store)
        assert migrate(store, connection) == list(range(version + 1, newest + 1))
        check(store, connection)
        jobs = [JobId(number) for number in (1, 2, 3)]
        assert states(store, connection, jobs) == [
            State.AVAILABLE, State.SCHEDULED, State.DISCARDED,
        ]  # fmt: skip
        [queue] = connection.run(store.queues())
        assert {state: count for state, count in queue.counts.items() if count} == dict.fromkeys(
            (State.AVAILABLE, State.SCHEDULED, State.DISCARDED), 1
        )
        assert connection.run(store.retry(jobs[2:])) == jobs[2:]
        connection.run(store.stage(10))
        jobs += enqueue(store, connection)
        session = open_session(store, connection)
        assert sorted(job.id for job in claim(store, connection, session)) == jobs
        led = described(store)
        drop(store)
        migrate(store, connection)
        assert led == described(store)


def test_a_database_that_is_too_old(empty_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the way from its version is gone, an older Rota has to go it first."""
    known = empty_store.migrations
    with closing(empty_store.connect()) as connection:
        make_old(empty_store, connection, 3)
        later = {max(known()) + 1: "SELECT 1;"}
        monkeypatch.setattr(empty_store, "migrations", lambda *_: later, raising=False)
        for refused in (check, migrate):
            with pytest.raises(SchemaOutdated, match="an older Rota first"):
                refused(empty_store, connection)
        assert connection.run(empty_store.schema_version()) == 3
