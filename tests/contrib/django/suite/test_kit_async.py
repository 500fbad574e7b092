"""The test kit with async handlers and async tests: all in the transaction of Django's `TestCase`."""

import threading
from typing import Any
from unittest import TestResult, TestSuite, skipIf, skipUnless

from asgiref.sync import sync_to_async
from django.db import IntegrityError, connection, connections, transaction
from django.test import TestCase, TransactionTestCase
from shop.models import Order

from rota import ConfigError
from rota.contrib.django import rota
from rota.contrib.django.address import IN_MEMORY
from rota.contrib.django.models import Job
from rota.contrib.django.tasks_api import task_finished
from rota.testing import Kit
from tests.contrib.django.suite.chores import (
    break_the_block,
    charge_async,
    note,
    order_async,
    order_in_a_transaction,
    order_now,
    place_async,
)
from tests.fixtures.workers import until

PSYCOPG2 = connection.Database.__name__ == "psycopg2"


def found(query: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return int(cursor.fetchone()[0])


def emails() -> list[str]:
    return [order.email for order in Order.objects.order_by("email")]


class Sync(TestCase):
    """Async handlers in a blocking test."""

    def setUp(self) -> None:
        self.kit = self.enterContext(Kit(connection, app=rota))

    def test_own_task(self) -> None:
        """An async handler writes and enqueues in the test's transaction, and sees what is there."""
        Order.objects.create(email="a@example.org", cents=1)
        order_async.enqueue("b@example.org")
        runs = self.kit.drain()
        self.assertEqual(runs.of(order_async)[0].result, 2)
        self.assertEqual(emails(), ["a@example.org", "b@example.org"])
        self.kit.assert_enqueued(note, number=2, state="completed")

    def test_task_of_django(self) -> None:
        """So does an async task of Django's."""
        result = place_async.enqueue("a@example.org")
        self.kit.drain()
        self.assertEqual(place_async.get_result(result.id).return_value, 1)
        self.assertEqual(emails(), ["a@example.org"])
        self.kit.assert_enqueued(note, number=1)

    def test_a_failure_is_undone(self) -> None:
        """What a failing handler did is undone, and the connection goes on.

        So it does after an error of the database.
        """
        order_async.enqueue("a@example.org", fails=True)
        order_async.enqueue("b@example.org", twice=True)
        order_now.enqueue("c@example.org", twice=True)
        order_async.enqueue("d@example.org")
        runs = self.kit.drain(raises=False)
        self.assertEqual((runs.completed, runs.discarded), (2, 3))
        self.assertIsInstance(runs.of(order_async)[1].error, IntegrityError)
        self.assertIsInstance(runs.of(order_now)[0].error, IntegrityError)
        self.assertEqual(emails(), ["d@example.org"])
        with self.assertRaises(IntegrityError):
            self.kit.run(order_async, "e@example.org", twice=True)
        self.assertEqual(emails(), ["d@example.org"])

    def test_callbacks_of_a_failure(self) -> None:
        """What a failing handler would do after a commit is forgotten, and that of the others is not."""
        order_now.enqueue("a@example.org", twice=True)
        order_now.enqueue("b@example.org")
        with self.captureOnCommitCallbacks() as callbacks:
            self.kit.drain(raises=False)
        self.assertEqual(len(callbacks), 1)

    def test_a_broken_block(self) -> None:
        """A handler that hides a failed statement is told of, since Django undoes what it did."""
        break_the_block.enqueue()
        with self.assertRaisesRegex(ConfigError, "catch the error around a block"):
            self.kit.drain()
        self.assertEqual(emails(), [])

    def test_inline(self) -> None:
        """An async handler runs as soon as it is enqueued, and so does what it enqueues."""
        with self.kit.inline():
            order_async.enqueue("a@example.org")
        self.assertEqual(emails(), ["a@example.org"])
        self.kit.assert_enqueued(note, number=1, state="completed")

    @skipIf(PSYCOPG2, "its connections are not those of Rota's own")
    def test_own_transaction(self) -> None:
        """A transaction of a handler's is a savepoint, in which its own statements go."""
        order_in_a_transaction.enqueue("a@example.org", 1)
        order_in_a_transaction.enqueue("b@example.org", 2, fails=True)
        runs = self.kit.drain(raises=False)
        self.assertEqual((runs.completed, runs.discarded), (1, 1))
        self.assertEqual(emails(), ["a@example.org"])
        with rota.transaction() as tx:
            tx.execute("UPDATE shop_order SET cents = 7")
            note.using(conn=tx).enqueue(1)
        self.kit.assert_enqueued(note)
        self.assertEqual(Order.objects.get().cents, 7)

    def test_signals(self) -> None:
        """Receivers of `task_finished` have heard of it after the drain, and see what the task did."""
        heard = []

        def hear(task_result: Any, **_: object) -> None:
            heard.append((task_result.return_value, emails()))

        task_finished.connect(hear)
        self.addCleanup(task_finished.disconnect, hear)
        place_async.enqueue("a@example.org")
        self.kit.drain()
        self.assertEqual(heard, [(1, ["a@example.org"])])


class Async(TestCase):
    """Async tests, around which Django puts `async_to_sync`."""

    async def test_handlers(self) -> None:
        """Handlers of each kind write and enqueue in the test's transaction."""
        with Kit(connection, app=rota) as kit:
            await Order.objects.acreate(email="a@example.org", cents=1)
            await order_async.aenqueue("b@example.org")
            await order_now.aenqueue("c@example.org")
            await place_async.aenqueue("d@example.org")
            await kit.aassert_enqueued(order_async, email="b@example.org")
            runs = await kit.adrain()
            self.assertEqual(runs.of(order_async)[0].result, 2)
            self.assertEqual((await kit.arun(order_async, "e@example.org")).result, 5)
            await kit.aassert_enqueued(note, number=5, state="available")
        self.assertEqual(await Order.objects.acount(), 5)

    async def test_every_way_to_name_it(self) -> None:
        """A connection, its proxy and its alias are the same, in the test and in the tested code."""
        for given in (connection, connections["default"], "default"):
            with self.subTest(given=type(given).__name__), Kit(given, app=rota) as kit:
                await note.using(conn=connection).aenqueue(1)
                await note.using(conn=connections["default"]).aenqueue(2)
                await note.using(conn="default").aenqueue(3)
                self.assertEqual((await kit.adrain()).completed, 3)

    async def test_blocking_code(self) -> None:
        """Code that Django's `sync_to_async` calls enqueues there, too, also before all else."""
        with Kit(connection, app=rota) as kit:
            await sync_to_async(note.enqueue)(1)
            await sync_to_async(self._drained)(kit, 1)

    def _drained(self, kit: Kit, number: int) -> None:
        kit.assert_enqueued(note, number=number)
        self.assertEqual(kit.drain().completed, 1)

    async def test_a_failure_is_undone(self) -> None:
        """What a failing handler did is undone, and the connection goes on."""
        with Kit(connection, app=rota) as kit:
            await order_async.aenqueue("a@example.org", fails=True)
            await order_async.aenqueue("b@example.org", twice=True)
            await order_async.aenqueue("c@example.org")
            runs = await kit.adrain(raises=False)
            self.assertEqual((runs.completed, runs.discarded), (2, 2))
            with self.assertRaises(IntegrityError):
                await kit.arun(order_async, "d@example.org", twice=True)
        self.assertEqual([order.email async for order in Order.objects.all()], ["c@example.org"])

    async def test_inline(self) -> None:
        """A handler runs as soon as it is enqueued."""
        with Kit(connection, app=rota) as kit, kit.inline():
            await order_async.aenqueue("a@example.org")
            await kit.aassert_enqueued(note, number=1, state="completed")

    @skipIf(PSYCOPG2, "its connections are not those of Rota's own")
    async def test_own_transaction(self) -> None:
        """A transaction of Rota's own is a savepoint of the test's."""
        with Kit(connection, app=rota) as kit:
            await order_in_a_transaction.aenqueue("a@example.org", 1)
            await kit.adrain()
            async with rota.transaction() as tx:
                await tx.aexecute("UPDATE shop_order SET cents = 7")
                await note.using(conn=tx).aenqueue(1)
            self.assertEqual((await Order.objects.aget()).cents, 7)
            await kit.aassert_enqueued(note)
            with self.assertRaisesRegex(ConfigError, "write a def"):
                await kit.arun(charge_async)

    async def test_signals(self) -> None:
        """Receivers of `task_finished` are in the thread of the ORM."""
        heard = []

        def hear(**_: object) -> None:
            heard.append((threading.get_ident(), emails()))

        task_finished.connect(hear)
        self.addCleanup(task_finished.disconnect, hear)
        with Kit(connection, app=rota) as kit:
            await place_async.aenqueue("a@example.org")
            await kit.adrain()
        thread = await sync_to_async(threading.get_ident)()
        self.assertEqual(heard, [(thread, ["a@example.org"])])

    async def test_blocking_calls(self) -> None:
        """A blocking method of the kit's is refused with the way out."""
        with Kit(connection, app=rota) as kit:
            for call in (kit.drain, kit.jobs, kit.refute_enqueued):
                with self.assertRaisesRegex(ConfigError, "use the async twin"):
                    call()


class NoTransaction(TransactionTestCase):
    """Where nothing would be rolled back the kit refuses to work."""

    def test_sync(self) -> None:
        """In a blocking test, at once."""
        with self.assertRaisesRegex(ConfigError, "Django: a TestCase, whose tests may be async"):
            Kit(connection, app=rota)
        with transaction.atomic(), Kit(connection, app=rota) as kit:
            note.enqueue(1)
            kit.assert_enqueued(note, number=1)
            transaction.set_rollback(True)

    async def test_async(self) -> None:
        """In an async test, at the first use."""
        with Kit(connection, app=rota) as kit:
            with self.assertRaisesRegex(
                ConfigError, "Django: a TestCase, whose tests may be async"
            ):
                await note.aenqueue(1)
            with self.assertRaisesRegex(
                ConfigError, "Django: a TestCase, whose tests may be async"
            ):
                await kit.adrain()


class Leaving(TransactionTestCase):
    """What is left of a test, in no transaction."""

    def test_nothing_stays(self) -> None:
        """Neither rows nor jobs of a test have stayed, once it has ended."""
        if rota.url == IN_MEMORY:
            self.skipTest("jobs that earlier tests have committed would be run, too")
        before = Job.objects.count()
        for test in (Sync("test_own_task"), Async("test_handlers")):
            result = TestResult()
            TestSuite([test]).run(result)
            self.assertTrue(result.wasSuccessful(), result.errors)
        self.assertEqual(Order.objects.count(), 0)
        self.assertEqual(Job.objects.count(), before)

    @skipUnless(connection.vendor == "postgresql", "SQLite does not care")
    def test_no_connection_stays(self) -> None:
        """Nor has a connection of Rota's own: Django could not remove its test database."""
        others = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        with transaction.atomic(), Kit(connection, app=rota):
            note.using(queue="a queue that is made").enqueue(1)
            self.assertEqual(found(others), 1)
            transaction.set_rollback(True)
        # The server's process ends a little after its connection.
        until(lambda: found(others) == 0, "the connection to go")
