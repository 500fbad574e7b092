"""The test kit in the transaction of Django's `TestCase`."""

import threading

from django.db import connection, connections, transaction
from django.test import TestCase
from shop.models import Order

from rota import ConfigError
from rota.contrib.django import rota
from rota.testing import Kit
from tests.contrib.django.suite.chores import add, charge, note, urgent


class Kits(TestCase):
    """What is enqueued without `conn=` goes where Django's connection goes, which is the test's."""

    def test_own_task(self) -> None:
        """A task of Rota's own is seen and run, whichever way the connection is given."""
        for given in (connection, connections["default"], "default"):
            with self.subTest(given=type(given).__name__), Kit(given, app=rota) as kit:
                note.enqueue(1)
                kit.assert_enqueued(note, number=1)
                note.using(conn=connection).enqueue(2)
                note.using(conn="default").enqueue(3)
                self.assertEqual(kit.drain().completed, 3)

    def test_task_of_django(self) -> None:
        """So is a task of Django's."""
        with Kit(connection, app=rota) as kit:
            with transaction.atomic():
                Order.objects.create(email="a@example.org", cents=1)
                result = add.enqueue(1, right=2)
            kit.assert_enqueued(add.module_path)
            job = kit.assert_enqueued(add, left=1, right=2)
            self.assertEqual(job.args, {"left": 1, "right": 2})
            self.assertEqual(kit.drain().of(add).completed, 1)
            self.assertEqual(add.get_result(result.id).return_value, 3)
            self.assertEqual(kit.run(add, 3, right=4).result, 7)
            self.assertEqual(kit.jobs(add, left=3)[0].args, {"left": 3, "right": 4})
            kit.run(urgent.using(priority=5))
            kit.assert_enqueued(urgent, priority=-5)

    def test_no_task(self) -> None:
        """What can be no job of the app is refused, rather than never found."""
        with Kit(connection, app=rota) as kit:
            with self.assertRaisesRegex(ConfigError, "no parameter 'rihgt'; it has left, right"):
                kit.refute_enqueued(add, rihgt=2)
            with self.assertRaisesRegex(ConfigError, "not a task of the app.*on Rota's backend"):
                kit.refute_enqueued(add.func)

    def test_another_thread(self) -> None:
        """A thread of the code under test has another connection, which would commit."""
        refused: list[BaseException] = []

        def enqueue() -> None:
            try:
                note.enqueue(1)
            except ConfigError as error:
                refused.append(error)

        with Kit(connection, app=rota) as kit:
            thread = threading.Thread(target=enqueue)
            thread.start()
            thread.join()
            self.assertIn("runs in another thread than the test", str(refused[0]))
            kit.refute_enqueued()

    def test_job_transaction(self) -> None:
        """A handler's block with Django's connection is a savepoint of the test's."""
        with Kit(connection, app=rota) as kit:
            charge.enqueue("a@example.org")
            charge.enqueue("b@example.org", fails=True)
            runs = kit.drain(raises=False)
            self.assertEqual((runs.completed, runs.discarded), (1, 1))
            self.assertEqual([order.email for order in Order.objects.all()], ["a@example.org"])
