"""Connections and transactions of Rota's own."""

import threading
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rota.errors import LeaseLost
from rota.model.job import JobId, Order, SessionId
from rota.store.connections import Connection
from rota.store.opening import open_store
from rota.store.protocol import Store
from tests.store.factories import claim, enqueue, open_session, record, run_inside, spec_of


def test_a_closed_connection_opens_again(store: Store, connection: Connection) -> None:
    """After a close the next operation connects anew."""
    [job] = enqueue(store, connection)
    connection.close()
    connection.close()
    assert record(store, connection, job).id == job


def test_a_connection_moves_between_threads(store: Store, connection: Connection) -> None:
    """A connection may be made in one thread and used in another."""
    enqueue(store, connection)
    found: list[JobId] = []
    thread = threading.Thread(target=lambda: found.extend(enqueue(store, connection)))
    thread.start()
    thread.join()
    assert record(store, connection, found[0]).id == found[0]


def test_an_operation_that_fails_leaves_the_connection_usable(
    store: Store, connection: Connection
) -> None:
    """After an error of an operation the next one works."""
    enqueue(store, connection)
    for _ in range(3):
        with pytest.raises(LeaseLost):
            claim(store, connection, SessionId(4242))
        assert len(enqueue(store, connection)) == 1


def test_an_operation_that_is_sent(store: Store, connection: Connection) -> None:
    """It has the same result, or the same error, when its answer is asked for."""
    session = open_session(store, connection)
    jobs = enqueue(store, connection, 3)
    for job in jobs:
        answer = connection.send(store.claim(session, ("default",), 1, woken=True))
        assert [claimed.id for claimed in answer()] == [job]
    assert connection.send(store.claim(session, ("default",), 0))() == []
    assert connection.send(store.get(jobs))() == connection.run(store.get(jobs))
    with pytest.raises(LeaseLost):
        connection.send(store.claim(SessionId(4242), ("default",), 1, woken=True))()
    assert len(enqueue(store, connection)) == 1


def test_transactions_one_after_the_other(store: Store, connection: Connection) -> None:
    """A transaction that has ended does not influence the next one."""
    jobs: list[JobId] = []
    for number in range(6):
        transaction = store.transaction()
        operation = store.enqueue(Order(spec_of(), [str(number)]))
        enqueued = run_inside(store, transaction, operation)
        if number % 2:
            transaction.commit()
            jobs += enqueued
        else:
            transaction.rollback()
    assert [job.args for job in connection.run(store.get(jobs))] == ["1", "3", "5"]


def test_an_ended_transaction_can_be_rolled_back(store: Store, connection: Connection) -> None:
    """Rolling back after a commit changes nothing."""
    transaction = store.transaction()
    jobs = run_inside(store, transaction, store.enqueue(Order(spec_of(), ["1"])))
    transaction.commit()
    transaction.rollback()
    assert len(connection.run(store.get(jobs))) == 1


def test_closing_the_store_twice(store: Store) -> None:
    """A store can be closed whether it kept something open or not."""
    store.transaction().commit()
    store.close()
    store.close()


def test_which_database_it_is(store: Store, store_url: str, tmp_path: Path) -> None:
    """All URLs that lead to a database agree on which one it is, and others do not."""

    def identity(url: str) -> str:
        with closing(open_store(url)) as opened, closing(opened.connect()) as connection:
            return connection.run(opened.identity())

    if store.name == "sqlite":
        path = Path(store_url.removeprefix("sqlite:///"))
        (tmp_path / "link.db").symlink_to(path)
        same, other = f"sqlite:///{tmp_path}/link.db", f"sqlite:///{tmp_path}/other.db"
    else:
        name = urlsplit(store_url).path
        same = f"{store_url}{'&' if '?' in store_url else '?'}application_name=another"
        other = store_url.replace(name, "/postgres", 1)
    assert identity(store_url) == identity(same) != identity(other)
