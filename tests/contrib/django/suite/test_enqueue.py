"""Enqueueing through Django's connections."""

import itertools
import threading
from typing import Any
from unittest import SkipTest, skipUnless

from asgiref.sync import async_to_sync
from django.db import DatabaseError, connection, connections, transaction
from django.test import TestCase, TransactionTestCase
from django.test.utils import CaptureQueriesContext
from shop.models import Order

from rota import ConfigError, JobExists, Limit, Placing, Rota, StoreError, Unique
from rota.contrib.django import rota
from rota.contrib.django.address import IN_MEMORY
from tests.contrib.django.suite.chores import note
from tests.contrib.django.suite.running import jobs

numbers = itertools.count(1)
POSTGRES = connection.vendor == "postgresql"
COPIES = POSTGRES and connection.Database.__name__ == "psycopg"


class Undo(Exception):
    """Rolls a block back."""


class Enqueueing(TransactionTestCase):
    """Outside of a test's transaction, so that blocks are those of the application."""

    def setUp(self) -> None:
        self.queue = f"enqueue-{next(numbers)}"
        self.note: Any = note.using(queue=self.queue)

    def test_rolls_back_with_atomic(self) -> None:
        """A job is gone with the row that was written before it."""
        with self.assertRaises(Undo), transaction.atomic():
            Order.objects.create(email="a@example.org", cents=1)
            job = self.note.enqueue(1)
            self.assertEqual(job.record().state, "available")
            raise Undo
        self.assertEqual(Order.objects.count(), 0)
        self.assertEqual(jobs(self.queue), [])

    def test_commits_with_atomic(self) -> None:
        """A job is there with the row, and not before."""
        with transaction.atomic():
            self.note.enqueue(1)
            self.assertEqual(seen_elsewhere(self.queue), 0)
        self.assertEqual(seen_elsewhere(self.queue), 1)

    def test_savepoint(self) -> None:
        """An inner block takes its own jobs back, and no others."""
        with transaction.atomic():
            kept = self.note.enqueue(1)
            with self.assertRaises(Undo), transaction.atomic():
                self.note.enqueue_many([(2,), (3,)])
                raise Undo
        self.assertEqual([job.id for job in jobs(self.queue)], [kept.id])

    def test_without_atomic(self) -> None:
        """Outside of a block a job is stored at once."""
        self.note.enqueue(1)
        self.assertEqual(seen_elsewhere(self.queue), 1)

    def test_several_statements_without_atomic(self) -> None:
        """An enqueue of several statements is all or nothing, though Django is in autocommit mode."""
        count = 0

        def fails_later(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
            nonlocal count
            count += 1
            if count == 4:
                raise DatabaseError("the line is cut")
            return execute(sql, params, many, context)

        unique = self.note.using(unique="number:{number}")
        unique.enqueue(1)
        with connection.execute_wrapper(fails_later), self.assertRaises(StoreError):
            unique.enqueue_many([(number,) for number in range(1, 20)])
        self.assertGreaterEqual(count, 4)
        self.assertEqual(len(jobs(self.queue)), 1)
        self.assertEqual(unique.enqueue(5).placing, Placing.CREATED)

    def test_many(self) -> None:
        """Thousands are stored in the block, by COPY where the driver has it."""
        with self.assertRaises(Undo), transaction.atomic():
            self.note.enqueue_many([(number,) for number in range(2000)])
            self.assertEqual(len(jobs(self.queue)), 2000)
            raise Undo
        self.assertEqual(jobs(self.queue), [])
        self.note.enqueue_many([(number,) for number in range(2000)])
        self.assertEqual(len(jobs(self.queue)), 2000)

    def test_lowest_priority(self) -> None:
        """The first number of all is a number where a driver writes it into the statement, too."""
        for first in (
            self.note.using(priority=-32768),
            self.note.using(priority=-32768, limit=Limit("k", running=1)),
        ):
            with transaction.atomic():
                ids = [first.enqueue(1).id, *first.enqueue_many([(2,)] * 300)]
                ids.append(first.using(delay=60).enqueue(3).id)
            found = {job.id for job in jobs(self.queue) if job.priority == -32768}
            self.assertLessEqual({*ids}, found)

    @skipUnless(COPIES, "no COPY here")
    def test_copy(self) -> None:
        """With psycopg 3 the args of many jobs are no parameters of a statement."""
        seen: list[Any] = []

        def see(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
            seen.append(params)
            return execute(sql, params, many, context)

        self.note.enqueue(1)
        with connection.execute_wrapper(see):
            self.note.enqueue_many([(number,) for number in range(2000)])
        self.assertGreater(len(seen), 0)
        self.assertEqual([params for params in seen if "args" in (params or ())], [])

    @skipUnless(COPIES, "no COPY here")
    def test_copy_in_a_broken_block(self) -> None:
        """COPY goes round Django's cursor, and is refused like any statement once the block is lost."""
        self.note.enqueue(1)
        with transaction.atomic():
            transaction.set_rollback(True)
            with self.assertRaisesRegex(StoreError, "the end of the 'atomic' block"):
                self.note.enqueue_many([(number,) for number in range(2000)])
        self.assertEqual(len(jobs(self.queue)), 1)

    def test_a_refusal_breaks_the_block(self) -> None:
        """After an error of the database the block rolls back, also if the caller goes on."""
        with transaction.atomic():
            Order.objects.create(email="a@example.org", cents=1)
            with connection.execute_wrapper(refuse), self.assertRaises(StoreError):
                self.note.enqueue(1)
            self.assertTrue(connection.needs_rollback)
            with self.assertRaisesRegex(StoreError, "atomic"):
                self.note.enqueue(2)
        self.assertEqual(Order.objects.count(), 0)

    def test_an_error_of_args_breaks_nothing(self) -> None:
        """What is refused before the database is asked leaves the block as it was."""
        from rota import ArgsError

        with transaction.atomic():
            with self.assertRaises(ArgsError):
                self.note.enqueue("no number")
            self.note.enqueue(1)
        self.assertEqual(len(jobs(self.queue)), 1)

    def test_a_taken_key_breaks_nothing(self) -> None:
        """A key that is taken is no error of the database: the block goes on."""
        strict = self.note.using(unique=Unique(key="strict:{number}", on_conflict="raise"))
        with transaction.atomic():
            strict.enqueue(1)
            with self.assertRaises(JobExists):
                strict.enqueue(1)
            strict.enqueue(2)
        self.assertEqual(len(jobs(self.queue)), 2)

    def test_other_thread(self) -> None:
        """A connection of another thread is refused with the way out: its alias."""
        found: list[BaseException] = []

        def enqueue() -> None:
            try:
                self.note.enqueue(1, conn=mine)
            except ConfigError as error:
                found.append(error)

        mine = connections["default"]
        thread = threading.Thread(target=enqueue)
        thread.start()
        thread.join()
        [error] = found
        self.assertIn("give its alias: conn='default'", str(error))

    def test_set_autocommit(self) -> None:
        """Without autocommit the jobs are part of the transaction that the caller ends."""
        if not POSTGRES:
            self.skipTest("Django on SQLite refuses that")
        transaction.set_autocommit(False)
        try:
            self.note.enqueue_many([(1,), (2,)])
            transaction.rollback()
        finally:
            transaction.set_autocommit(True)
        self.assertEqual(jobs(self.queue), [])


class Connections(TestCase):
    """In the transaction of a test, as applications test."""

    def setUp(self) -> None:
        self.queue = f"connections-{next(numbers)}"
        self.note: Any = note.using(queue=self.queue)

    def test_queries_are_counted(self) -> None:
        """Statements go through Django's cursors: one for a job, once the lane is known."""
        self.note.enqueue(1)
        with self.assertNumQueries(1 if POSTGRES else 2):
            self.note.enqueue(2)
        with CaptureQueriesContext(connection) as seen:
            self.note.enqueue_many([(number,) for number in range(2000)])
        self.assertGreater(len(seen), 0)

    def test_every_way_to_name_it(self) -> None:
        """A connection, its proxy and its alias are the same."""
        for conn in (connection, connections["default"], "default"):
            self.note.enqueue(1, conn=conn)
        self.assertEqual(len(jobs(self.queue)), 3)

    def test_unknown_alias(self) -> None:
        """An alias that the settings do not have is refused with those that they have."""
        with self.assertRaisesRegex(ConfigError, "'defautl' is no alias .* there are: default"):
            self.note.enqueue(1, conn="defautl")

    def test_an_app_without_django(self) -> None:
        """`conn=` takes Django's connections in any app of the same database."""
        if rota.url == IN_MEMORY:
            self.skipTest("an app of its own does not reach a database in memory")
        with Rota(rota.url) as plain:
            send: Any = plain.task(name="plain", queue=self.queue)(_plain)
            send.enqueue(1, conn="default")
            self.assertEqual([job.task for job in jobs(self.queue)], ["plain"])

    def test_async(self) -> None:
        """`aenqueue` runs in the thread of Django's ORM: the same connection, the same transaction."""

        async def enqueue() -> None:
            await self.note.aenqueue(1)
            await self.note.aenqueue_many([(2,), (3,)])
            self.assertEqual((await (await self.note.aenqueue(4)).arecord()).args, '{"number":4}')

        async_to_sync(enqueue)()
        self.assertEqual(len(jobs(self.queue)), 4)

    def test_acting_joins(self) -> None:
        """A job of this transaction is cancelled in it."""
        job = self.note.enqueue(1)
        self.assertEqual(job.cancel(), "cancelled")
        self.assertEqual(job.status, "cancelled")

    def test_scheduled(self) -> None:
        """A job with a time has it, to the second, whatever the driver makes of times."""
        from datetime import UTC, datetime, timedelta

        at = datetime.now(UTC) + timedelta(days=3)
        for use_tz in (True, False):
            with self.settings(USE_TZ=use_tz):
                found = self.note.using(at=at).enqueue(1).record().scheduled_at
                assert found is not None
                self.assertLess(abs(found - at), timedelta(seconds=1))


def refuse(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
    """A statement that the database refuses."""
    del sql, params
    return execute("SELECT nothing FROM nowhere", (), many, context)


def seen_elsewhere(queue: str) -> int:
    """How many jobs of a queue another connection sees; in memory one sees all, or is locked out."""
    if rota.url == IN_MEMORY:
        raise SkipTest("connections to a database in memory are not apart")
    found: list[int] = []

    def look() -> None:
        found.append(len(jobs(queue)))
        connection.close()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found[0]


def _plain(number: int) -> None:
    del number
