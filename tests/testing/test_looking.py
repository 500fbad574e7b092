"""What was enqueued, and what a failing assertion says."""

from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from rota import ConfigError, Rota
from rota.testing import Kit


@pytest.fixture
def mail(app: Rota) -> Any:
    @app.task(name="mail", queue="mail")
    def mail(user: str, at: datetime | None = None, **more: int) -> None: ...

    return mail


@pytest.fixture
def bill(app: Rota) -> Any:
    @app.task(name="bill")
    def bill(order: int) -> None: ...

    return bill


def test_partial_args(kit: Kit, mail: Any, bill: Any) -> None:
    """Some args are enough, as the handler gets them or as JSON has them; the newest job is given."""
    at = datetime(2026, 11, 23, tzinfo=UTC)
    mail.enqueue("a", at)
    second = mail.using(priority=3).enqueue("a", None, count=2)
    bill.enqueue(7)
    assert kit.assert_enqueued(mail, user="a").id == second.id
    assert kit.assert_enqueued(mail, at=at).args == {"user": "a", "at": at}
    assert kit.assert_enqueued("mail", at="2026-11-23T00:00:00Z").args["at"] == at
    assert kit.assert_enqueued(mail, {"count": 2}, priority=3, queue="mail").id == second.id
    kit.assert_enqueued(mail, count=2)
    assert [job.task for job in kit.jobs()] == ["mail", "mail", "bill"]
    assert [job.args for job in kit.jobs(queue="default", state="available")] == [{"order": 7}]
    kit.refute_enqueued(mail, user="b")
    kit.refute_enqueued(bill, order=8)


def test_the_nearest_comes_first(kit: Kit, mail: Any, bill: Any) -> None:
    """A failure says what was enqueued, with what differs."""
    for user in "abc":
        mail.enqueue(user)
    mail.using(queue="slow").enqueue("d", None, size=4)
    bill.enqueue(7)
    with pytest.raises(AssertionError) as raised:
        kit.assert_enqueued(mail, user="d", queue="mail", size=4)
    first, _, nearest, why, *rest = str(raised.value).splitlines()
    assert first == "no job of mail(user='d', size=4) with queue='mail' was enqueued"
    assert nearest.endswith("mail(user='d', at=None, size=4), queue slow, available")
    assert why.strip() == "queue is 'slow', not 'mail'"
    assert any(line.strip() == "user is 'c', not 'd'" for line in rest)
    assert any(line.strip() == "there is no arg size" for line in rest)
    assert rest[-1].endswith("bill(order=7), queue default, available")


def test_only_some_are_named(kit: Kit, bill: Any) -> None:
    """Of many jobs a message has ten."""
    bill.enqueue_many([(order,) for order in range(13)])
    with pytest.raises(AssertionError, match="and 3 more"):
        kit.assert_enqueued(bill, order=99)


def test_counts(kit: Kit, bill: Any) -> None:
    """Too many is wrong, too."""
    bill.enqueue_many([(1,), (1,)])
    kit.assert_enqueued(bill, count=2)
    with pytest.raises(
        AssertionError, match=r"^2 jobs of bill\(order=1\) were enqueued, and 1 should be"
    ):
        kit.assert_enqueued(bill, order=1, count=1)
    with pytest.raises(
        AssertionError, match=r"^no job of bill\(order=2\) was enqueued, and 3 should be"
    ):
        kit.assert_enqueued(bill, order=2, count=3)


def test_nothing_was_enqueued(kit: Kit, bill: Any) -> None:
    """Then the message says why a job may not be seen."""
    with pytest.raises(AssertionError, match=r"nothing was enqueued.*rota_test\.use"):
        kit.assert_enqueued(bill)


def test_refuting(kit: Kit, bill: Any) -> None:
    """A job that should not be there is named."""
    bill.enqueue(7)
    with pytest.raises(
        AssertionError, match=r"1 job of bill was enqueued, and none(.|\n)*bill\(order=7\)"
    ):
        kit.refute_enqueued(bill)
    with pytest.raises(AssertionError, match="1 job of any task was"):
        kit.refute_enqueued()


def test_a_parameter_that_is_not_there(kit: Kit, bill: Any) -> None:
    """No job could ever fit: the test itself is wrong."""
    with pytest.raises(ConfigError, match="no parameter 'oder'; it has order"):
        kit.refute_enqueued(bill, oder=7)


def test_args_by_place(kit: Kit, bill: Any) -> None:
    """Args are compared by name; the message says which name."""
    with pytest.raises(ConfigError, match=r"by name, order=7, or as a dict: \{'order': 7\}"):
        kit.assert_enqueued(bill, 7)  # type: ignore[arg-type]


def test_a_state_that_is_not_there(kit: Kit, bill: Any) -> None:
    """No job can be in it, so no job could ever fit; a state that is there is shown as it is written."""
    bill.enqueue(7)
    with pytest.raises(
        ConfigError, match="'done' is not a state; the states are scheduled, available"
    ):
        kit.refute_enqueued(bill, state="done")
    with pytest.raises(AssertionError, match="state is 'available', not 'completed'"):
        kit.assert_enqueued(bill, state="completed")


def test_long_values_are_cut(kit: Kit, mail: Any) -> None:
    """A message does not show megabytes."""
    mail.enqueue("x" * 10_000)
    with pytest.raises(AssertionError) as raised:
        kit.assert_enqueued(mail, user="y")
    assert len(str(raised.value)) < 1_000


def test_keys_of_the_tests_own(app: Rota, conn: Any) -> None:
    """A unique key differs in each test and is shown as asked for, unless it is to be real."""

    @app.task(name="import", unique="import:{source}")
    def load(source: str) -> None: ...

    keys: list[Any] = []
    uniques: tuple[Literal["test", "real"], ...] = ("test", "test", "real")
    for unique in uniques:
        with Kit(conn, app=app, unique=unique) as kit:
            load.enqueue("a")
            assert load.enqueue("a").duplicate
            [job] = kit.jobs(load)
            assert job.unique_key == "import:a"
            table = "rota_unique" if app.url.startswith("sqlite") else "rota.unique_key"
            keys.append(conn.execute(f"SELECT key FROM {table}").fetchone()[0])
            assert kit.drain().completed == 1
            conn.rollback()
    assert len(set(keys)) == 3
    assert keys[2] == "import:a"
    with pytest.raises(ConfigError, match='unique must be "test"'):
        Kit(conn, app=app, unique="mine")  # type: ignore[arg-type]


@pytest.mark.usefixtures("kit")
def test_jobs_that_hold_a_subject(app: Rota) -> None:
    """Code that looks for jobs by their keys finds them."""
    from rota.model.job import JobFilter  # as the app's own commands do

    @app.task(name="import", unique="import:{source}")
    def load(source: str) -> None: ...

    handle = load.enqueue("a")
    load.enqueue("b")
    found = app.database.run(app.database.store.list_jobs(JobFilter(subject="import:a")))
    assert [record.id for record in found] == [handle.id]
