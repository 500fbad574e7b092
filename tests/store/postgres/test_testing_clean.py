"""What rolled back tests leave behind, where no worker ever comes."""

import pytest

from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import enqueue


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_space_is_used_again(store: Store, connection: Connection) -> None:
    """After a cleaning, the log's rows lie where those of rolled back transactions lay."""
    places = []
    for _ in range(2):
        transaction = store.transaction()
        driver = transaction.connection
        driver.execute(
            "INSERT INTO rota.log (id, lane, segment, max_attempts, task, args)"
            " SELECT number, 1, 0, 1, 'x', '{}' FROM generate_series(1, 5000) AS number"
        )
        transaction.rollback()
        connection.run(store.testing.clean())
        [(size,)] = driver_size(store)
        places.append(size)
    assert places[0] == places[1] > 0
    assert enqueue(store, connection)


def driver_size(store: Store) -> list[tuple[int]]:
    """The size of the log's first segment."""
    transaction = store.transaction()
    try:
        cursor = transaction.connection.execute("SELECT pg_relation_size('rota.log_0')")
        return list(cursor.fetchall())
    finally:
        transaction.rollback()
