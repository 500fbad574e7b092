"""The audit: what people did, in its transaction, and the progress of a job that carries it out."""

from dataclasses import replace

import pytest

from rota.model.audit import Deed, plain_name
from rota.model.job import JobFilter, JobId
from rota.model.states import State
from rota.store.audit import Place
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import enqueue, in_state

DEED = Deed("ada", "jobs-retry", {"queue": "mail"})


def test_nothing(store: Store, connection: Connection) -> None:
    """A new database has no deeds."""
    assert connection.run(store.audit.records(10)) == []
    assert connection.run(store.audit.find(JobId(1))) is None


def test_deeds(store: Store, connection: Connection) -> None:
    """The newest first, page by page; texts come back as they were."""
    names = ["ada", "", "Zoë 😀 '\"%s;--", "bob"]
    for name in names:
        connection.run(store.audit.add(DEED._replace(who=name, changed=3, job=JobId(7))))
    first = connection.run(store.audit.records(3))
    rest = connection.run(store.audit.records(3, first[-1].id))
    assert [each.who for each in first + rest] == names[::-1]
    [deed] = rest
    assert (deed.action, deed.what, deed.changed, deed.job) == (
        "jobs-retry",
        {"queue": "mail"},
        3,
        7,
    )
    assert deed.at <= first[0].at
    assert deed.at.utcoffset() is not None


def test_few_are_kept(
    store: Store, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new deed removes what is older than the newest so many."""
    monkeypatch.setattr("rota.store.audit.KEPT", 3)
    for number in range(10):
        connection.run(store.audit.add(DEED._replace(who=str(number))))
    assert [each.who for each in connection.run(store.audit.records(10))] == ["9", "8", "7"]


def test_one_transaction(store: Store, connection: Connection) -> None:
    """What was done and the deed are both there, or neither is."""
    jobs = enqueue(store, connection, 2)

    def deed(gone: list[JobId]) -> Deed:
        return DEED._replace(changed=len(gone))

    def broken(gone: list[JobId]) -> Deed:
        raise ZeroDivisionError(gone)

    with pytest.raises(ZeroDivisionError):
        connection.run(store.audit.recorded(store.delete(jobs), broken))
    assert connection.run(store.audit.records(10)) == []
    assert len(connection.run(store.get(jobs))) == 2
    assert connection.run(store.audit.recorded(store.delete(jobs), deed)) == jobs
    assert [each.changed for each in connection.run(store.audit.records(10))] == [2]


def test_steps(store: Store, connection: Connection) -> None:
    """A job takes each step once: from where it is, with what it changes."""
    first, second = ([in_state(store, connection, State.DISCARDED).id] for _ in range(2))
    number = connection.run(store.audit.add(DEED._replace(job=JobId(99))))
    begun = connection.run(store.audit.find(JobId(99)))
    assert begun == Place(number, None, 0)
    assert connection.run(store.audit.step(begun, "a", store.retry(first))) == 1
    # Another run of the same job believes to be where this one was.
    assert connection.run(store.audit.step(begun, "b", store.retry(second))) is None
    assert connection.run(store.get(second))[0].state is State.DISCARDED
    there = connection.run(store.audit.find(JobId(99)))
    assert there == Place(number, "a", 1)
    assert connection.run(store.audit.step(there, "b", store.retry(second))) == 1
    assert [each.changed for each in connection.run(store.audit.records(1))] == [2]


def test_a_step_of_a_deed_that_is_gone(store: Store, connection: Connection) -> None:
    """Nothing is done that nobody would find in the audit."""
    jobs = enqueue(store, connection)
    assert connection.run(store.audit.step(Place(7, None, 0), "a", store.delete(jobs))) is None
    assert len(connection.run(store.get(jobs))) == 1


@pytest.mark.parametrize("state", [None, *State])
def test_counting_a_listing(store: Store, connection: Connection, state: State | None) -> None:
    """As many jobs as the listing has, up to its limit."""
    for each in State:
        if each is not State.AVAILABLE:
            in_state(store, connection, each, task="shop.send")
            in_state(store, connection, each, task="shop.pay")
    enqueue(store, connection, 3, task="shop.pay")
    for wanted in (
        JobFilter(state=state),
        JobFilter(state=state, task="shop.pay"),
        JobFilter(state=state, queue="nowhere"),
        JobFilter(state=state, limit=2),
        JobFilter(state=state, after=JobId(9), since=JobId(3)),
        JobFilter(state=state, subject="no:*"),
    ):
        listed = connection.run(store.list_jobs(wanted))
        assert connection.run(store.count_listed(wanted)) == len(listed), wanted
    whole = replace(JobFilter(state=state), limit=1000)
    assert connection.run(store.count_listed(whole)) > 0


def test_names() -> None:
    """A name is one line that every database can hold."""
    assert plain_name("Ada Lovelace") == "Ada Lovelace"
    assert plain_name("a\0b\nc\ud800d\x1b[31m") == "abcd[31m"
    assert len(plain_name("x" * 1000)) == 200
