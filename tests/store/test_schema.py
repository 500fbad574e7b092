"""The version of the tables, and bringing them up to date."""

import threading
from collections.abc import Mapping
from contextlib import closing
from shlex import quote

import pytest

from rota.errors import SchemaMissing, SchemaOutdated, SchemaTooNew, StoreError
from rota.model.job import JobFilter, JobId
from rota.store.connections import Connection
from rota.store.migrate import check, migrate, steps
from rota.store.protocol import Store
from rota.store.url import VARIABLE, migrating, shown
from tests.store.factories import enqueue, open_session, record
from tests.store.schema import contraction

MARK = "CREATE TABLE rota_mark (number integer);"


def with_migrations(store: Store, monkeypatch: pytest.MonkeyPatch, more: Mapping[int, str]) -> None:
    """Make the store believe that Rota has further migrations."""
    known = store.migrations

    def migrations(version: int = 0) -> Mapping[int, str]:
        return {**known(version), **{number: more[number] for number in more if number > version}}

    monkeypatch.setattr(store, "migrations", migrations, raising=False)


def test_an_empty_database(empty_store: Store) -> None:
    """Where there are no tables, the version is 0 and everything is pending."""
    with closing(empty_store.connect()) as connection:
        assert connection.run(empty_store.schema_version()) == 0
        assert steps(empty_store, 0) == empty_store.migrations()
        with pytest.raises(SchemaMissing) as raised:
            check(empty_store, connection)
        url = empty_store.url
        said = f"{shown(url)} has no Rota tables yet; run `rota migrate --url {quote(shown(url))}`"
        assert str(raised.value) == said


def test_which_database_to_migrate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command names the database without its password; it finds the environment's by itself."""
    url = "postgresql://ada:s3cret@host/shop?connect_timeout=1"
    assert migrating(url) == "rota migrate --url 'postgresql://ada@host/shop?connect_timeout=1'"
    monkeypatch.setenv(VARIABLE, url)
    assert migrating(url) == "rota migrate"


def test_working_without_tables(empty_store: Store) -> None:
    """Each operation says that the tables are missing, and the connection stays usable."""
    with closing(empty_store.connect()) as connection:
        with pytest.raises(SchemaMissing, match="rota migrate"):
            enqueue(empty_store, connection)
        with pytest.raises(SchemaMissing, match="rota migrate"):
            connection.run(empty_store.get([JobId(1)]))
        with pytest.raises(SchemaMissing, match="rota migrate"):
            connection.run(empty_store.list_jobs(JobFilter()))
        with pytest.raises(SchemaMissing, match="rota migrate"):
            open_session(empty_store, connection)
        migrate(empty_store, connection)
        assert len(enqueue(empty_store, connection)) == 1


def test_migrating(empty_store: Store) -> None:
    """An empty database gets the newest tables in one step, and once."""
    with closing(empty_store.connect()) as connection:
        [newest] = empty_store.migrations()
        assert migrate(empty_store, connection) == [newest]
        assert migrate(empty_store, connection) == []
        assert connection.run(empty_store.schema_version()) == newest
        check(empty_store, connection)


def test_migrating_keeps_the_jobs(
    store: Store, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later migration leaves what is stored alone."""
    [job] = enqueue(store, connection)
    before = record(store, connection, job)
    with_migrations(store, monkeypatch, {max(store.migrations()) + 1: MARK})
    assert len(migrate(store, connection)) == 1
    assert record(store, connection, job) == before


def test_tables_that_are_older(
    store: Store, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older schema is refused until it is migrated."""
    with_migrations(store, monkeypatch, {max(store.migrations()) + 1: MARK})
    with pytest.raises(SchemaOutdated, match="rota migrate"):
        check(store, connection)
    migrate(store, connection)
    check(store, connection)


def test_tables_that_are_newer(store: Store, connection: Connection) -> None:
    """Tables to which a later Rota has added something are worked with, and left alone."""
    newest = connection.run(store.schema_version())
    connection.run(store.migrate(999, MARK, after=newest))
    check(store, connection)
    assert migrate(store, connection) == []
    assert connection.run(store.schema_version()) == 999
    assert len(enqueue(store, connection)) == 1


def test_tables_that_are_too_new(store: Store, connection: Connection) -> None:
    """Tables from which a later Rota has taken what this one uses are refused and left alone."""
    newest = connection.run(store.schema_version())
    connection.run(store.migrate(999, contraction(store, newest), after=newest))
    check(store, connection)
    connection.run(store.migrate(1000, contraction(store, newest + 1), after=999))
    said = f"have version 1000 and need a Rota that knows version {newest + 1}, .* {newest}; upgrade Rota"
    for refused in (check, migrate):
        with pytest.raises(SchemaTooNew, match=said):
            refused(store, connection)
    assert connection.run(store.schema_version()) == 1000


def test_a_migration_is_applied_as_a_whole(store: Store, connection: Connection) -> None:
    """A migration that fails half-way changes nothing and can be applied again."""
    version = connection.run(store.schema_version())
    broken = f"{MARK}\nINSERT INTO rota_nowhere VALUES (1);"
    with pytest.raises(StoreError):
        connection.run(store.migrate(version + 1, broken, after=version))
    assert connection.run(store.schema_version()) == version
    connection.run(store.migrate(version + 1, MARK, after=version))
    assert connection.run(store.schema_version()) == version + 1


def test_a_migration_that_does_not_fit(store: Store, connection: Connection) -> None:
    """It is not applied to tables of another version than the one it begins with."""
    version = connection.run(store.schema_version())
    with pytest.raises(StoreError, match=f"needs Rota's tables of version {version + 1}"):
        connection.run(store.migrate(version + 2, MARK, after=version + 1))
    assert connection.run(store.schema_version()) == version
    connection.run(store.migrate(version + 1, MARK, after=version))


def test_two_who_migrate_at_once(empty_store: Store) -> None:
    """Migrating from two connections at the same time applies everything once."""
    start = threading.Barrier(3)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with closing(empty_store.connect()) as connection:
                start.wait()
                migrate(empty_store, connection)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with closing(empty_store.connect()) as connection:
        check(empty_store, connection)
        assert len(enqueue(empty_store, connection)) == 1
