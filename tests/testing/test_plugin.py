"""The plugin: real runs of pytest, in folders of their own."""

import sys
from pathlib import Path

import psycopg
import pytest

from rota import Rota, State
from rota.testing import Kit
from tests.fixtures.postgres import LOCKS

APP = """
from rota import Rota, State

rota = Rota({url!r})


@rota.task(name="mail", queue="mail", store_result=True)
def mail(user: str) -> str:
    if user == "nobody":
        raise LookupError(user)
    return f"to {{user}}"


@rota.task(name="load", unique="load:{{source}}")
def load(source: str) -> None:
    mail.enqueue(source)
"""

CONNECT = """
import {driver}


def connect():
    return {driver}.connect({target})
"""

CONNECTIONS = """
import pytest
from connect import connect


@pytest.fixture
def rota_connection():
    connection = connect()
    yield connection
    connection.rollback()
    connection.close()
"""


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run imports those that it names, and not all that are installed here."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def suite(pytester: pytest.Pytester, kit_url: str) -> pytest.Pytester:
    """A folder with an app and connections, and tests to come."""
    if kit_url.startswith("sqlite"):
        connect = CONNECT.format(driver="sqlite3", target=repr(kit_url.removeprefix("sqlite:///")))
    else:
        # To wait for another test's lock is an error. (Up to PostgreSQL 15 a table that grows is
        # locked, too, for a moment.)
        connect = CONNECT.format(
            driver="psycopg", target=f"{kit_url!r}, options='-c lock_timeout=2s'"
        )
    pytester.makepyfile(app=APP.format(url=kit_url), connect=connect)
    pytester.makeconftest(CONNECTIONS)
    return pytester


def run(suite: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run pytest there, with the plugin as if it was installed."""
    return suite.runpytest_subprocess("-p", "pytest_rota", *options)


def test_a_suite(suite: pytest.Pytester) -> None:
    """The fixture works, with the suite's own connection fixture; failures tell what there was."""
    suite.makepyfile(
        """
        from app import load, mail

        def test_one(rota_test):
            mail.enqueue("a")
            rota_test.assert_enqueued(mail, user="a", queue="mail")
            assert rota_test.drain()[0].result == "to a"

        def test_another_sees_nothing_of_it(rota_test):
            rota_test.refute_enqueued()

        def test_a_failure(rota_test):
            mail.enqueue("b")
            rota_test.assert_enqueued(mail, user="a")

        def test_a_handler_fails(rota_test):
            rota_test.run(mail, "nobody")
        """
    )
    result = run(suite)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["E*user is 'b', not 'a'", "E*LookupError: nobody"])
    # What failed is the test's own line, and not the kit's.
    result.stdout.no_fnmatch_line("*rota/testing/*")


@pytest.mark.parametrize("kit_url", ["postgres"], indirect=True)
def test_an_async_fixture(suite: pytest.Pytester, kit_url: str) -> None:
    """The connection may come from an async fixture of the suite."""
    suite.makepyfile(
        f"""
        import psycopg
        import pytest
        import pytest_asyncio
        from app import mail

        @pytest_asyncio.fixture
        async def rota_connection():
            async with await psycopg.AsyncConnection.connect({kit_url!r}) as connection:
                yield connection
                await connection.rollback()

        @pytest.mark.asyncio
        async def test_mail(rota_test):
            await mail.aenqueue("a")
            await rota_test.aassert_enqueued(mail, user="a")
            assert (await rota_test.adrain())[0].result == "to a"
        """
    )
    run(suite, "-p", "pytest_asyncio.plugin").assert_outcomes(passed=1)


def test_nothing_is_imported_before_a_test_asks(pytester: pytest.Pytester) -> None:
    """The plugin is loaded in every run; Rota only with the fixture's first use."""
    pytester.makepyfile(
        """
        import sys

        def loaded():
            return sorted(name for name in sys.modules if name == "rota" or name.startswith("rota."))

        def test_without_the_fixture():
            assert "pytest_rota" in sys.modules
            assert loaded() == []

        def test_with_the_fixture(rota_test):
            assert "rota.testing.kit" in loaded()
            assert "psycopg" not in sys.modules
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=2)


def test_the_app_has_its_database_back_after_a_failure(suite: pytest.Pytester) -> None:
    """A test that fails, and one whose fixtures fail, leave the app as it was."""
    suite.makepyfile(
        """
        import pytest
        from app import mail, rota

        store = rota.database.store

        @pytest.fixture
        def broken(rota_test):
            raise RuntimeError

        def test_fails(rota_test):
            assert rota.database.store is not store
            raise RuntimeError

        def test_errors(broken): ...

        def test_has_it_back():
            assert rota.database.store is store
        """
    )
    run(suite).assert_outcomes(passed=1, failed=1, errors=1)


def test_unittest(suite: pytest.Pytester) -> None:
    """The kit without fixtures, in a TestCase."""
    suite.makepyfile(
        test_case="""
        import unittest
        from app import mail, rota
        from connect import connect
        from rota.testing import Kit

        class MailTest(unittest.TestCase):
            def setUp(self):
                connection = connect()
                self.addCleanup(connection.close)
                self.kit = Kit(connection, app=rota)
                self.addCleanup(self.kit.close)

            def test_mail(self):
                mail.enqueue("a")
                self.kit.assert_enqueued(mail, user="a")
                self.assertEqual(self.kit.drain().completed, 1)
        """
    )
    done = suite.run(sys.executable, "-m", "unittest", "-v", "test_case")
    assert done.ret == 0, done.stderr.str()


PARALLEL = """
import os
import time
from pathlib import Path

import pytest
from app import load, mail

FOLDER = Path({folder!r})


@pytest.fixture(scope="session")
def meetings():
    return []


@pytest.fixture
def meet(meetings):
    # The first test of each process waits for those of all others, in the middle of its transaction.
    def meet():
        if not meetings:
            meetings.append(True)
            (FOLDER / os.environ["PYTEST_XDIST_WORKER"]).touch()
            until = time.monotonic() + 200
            while len(list(FOLDER.iterdir())) < {processes}:
                assert time.monotonic() < until
                time.sleep(0.01)

    return meet


@pytest.mark.parametrize("number", range({tests}))
def test_alone(rota_test, number, meet):
    load.enqueue("same")
    mail.using(priority=number % 3).enqueue("a")
    with pytest.raises(LookupError):
        rota_test.run(mail, "nobody")
    assert len(rota_test.jobs()) == 3
    meet()
    ran = rota_test.drain(due="all", raises=False)
    assert (len(ran.of(load)), ran.of(mail).completed, ran.discarded) == (1, 2, 1)
    assert len(rota_test.jobs()) == 4
"""


@pytest.mark.large
@pytest.mark.parametrize("kit_url", ["postgres"], indirect=True)
def test_many_processes_on_one_database(
    suite: pytest.Pytester, kit_url: str, tmp_path: Path
) -> None:
    """Eight processes are in a test's transaction at once: no test sees another one, or waits for it.

    A test that waits for another one's lock fails (see `suite`), since each process stays in the
    middle of its first test until all others have come as far.
    """
    suite.makepyfile(PARALLEL.format(folder=str(tmp_path), tests=64, processes=8))
    result = run(suite, "-p", "xdist.plugin", "-n", "8", "--dist", "load")
    result.assert_outcomes(passed=64)
    assert len(list(tmp_path.iterdir())) == 8
    with psycopg.connect(kit_url) as conn:
        left = conn.execute(
            "SELECT (SELECT count(*) FROM rota.job), (SELECT count(*) FROM rota.unique_key),"
            " (SELECT count(*) FROM rota.session)"
        ).fetchone()
    assert left == (0, 0, 0)


@pytest.mark.parametrize("kit_url", ["postgres"], indirect=True)
def test_open_tests_hold_no_lock_that_others_want(kit_url: str) -> None:
    """Two tests amid the same things: neither waits, and pg_locks has no ungranted request."""
    apps = [Rota(kit_url), Rota(kit_url)]
    with (
        psycopg.connect(kit_url) as one,
        psycopg.connect(kit_url) as two,
        psycopg.connect(kit_url, autocommit=True) as looker,
    ):
        kits = []
        for conn, app in zip((one, two), apps, strict=True):

            @app.task(name="load", unique="load:{source}", max_attempts=2)
            def load(source: str) -> None:
                raise ValueError(source)

            conn.execute("SET lock_timeout = '1ms'")
            kit = Kit(conn, app=app)
            kits.append(kit)
            load.enqueue("same")
            load.using(delay=60).enqueue("later")
            ran = kit.drain(due="all", raises=False)
            assert (ran.retried, ran.discarded) == (2, 2)
            kit.travel(days=1)
            assert load.enqueue("same").cancel() is State.CANCELLED
            load.using(queue="other").enqueue("another")
        # The locks of both are there at once, and none of them is waited for.
        held = looker.execute(
            f"SELECT count(DISTINCT pid), bool_and(granted) FROM {LOCKS} WHERE pid = ANY (%s)",
            [[one.info.backend_pid, two.info.backend_pid]],
        ).fetchone()
        assert held == (2, True)
        lanes = looker.execute(
            f"SELECT count(*) FROM {LOCKS} WHERE relation = 'rota.lane'::regclass"
            " AND mode NOT IN ('AccessShareLock')"
        ).fetchone()
        assert lanes == (0,)
        for kit in kits:
            assert len(kit.jobs()) == 4
            kit.close()
        one.rollback()
        two.rollback()
    for app in apps:
        app.close()


SHARDED = """
import sqlite3

import pytest

from rota import Rota

shop = Rota.shards({"eu": "sqlite:///eu.db", "us": "sqlite:///us.db"}, key="{user}")


@shop.task(name="mail")
def mail(user: str) -> None: ...


@pytest.fixture
def rota_app():
    return shop


@pytest.fixture
def rota_connection():
    found = {name: sqlite3.connect(f"{name}.db") for name in shop}
    yield found
    for connection in found.values():
        connection.rollback()
        connection.close()


def test_all(rota_test):
    for number in range(20):
        mail.enqueue(str(number))
    assert {name for name in shop if rota_test[name].jobs(mail)} == {"eu", "us"}
    assert rota_test.drain().completed == 20
"""


def test_an_app_with_several_databases(pytester: pytest.Pytester) -> None:
    """The fixture is a kit for each of them, where the app's fixture says so."""
    pytester.makepyfile(test_shards=SHARDED)
    pytester.runpytest_inprocess("-p", "pytest_rota").assert_outcomes(passed=1)
