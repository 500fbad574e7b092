"""Running Django's tasks: results, errors, signals, connections."""

from datetime import timedelta
from typing import Any

import django
from django.db import connection
from django.utils import timezone
from shop.models import Order

from rota import State
from rota.contrib.django import rota
from rota.contrib.django.backend import RotaBackend
from rota.contrib.django.results import worker_id
from rota.contrib.django.tasks_api import TaskResultStatus, task_finished, task_started
from rota.model.job import JobId, JobSpec
from rota.model.job import Order as JobOrder
from tests.contrib.django.suite import chores
from tests.contrib.django.suite.running import WorkerTestCase, jobs


class Results(WorkerTestCase):
    """What a result says once its task has run."""

    def run_task(self, task: Any, *args: Any, **kwargs: Any) -> Any:
        result = task.using(queue_name=self.queue).enqueue(*args, **kwargs)
        self.drain()
        result.refresh()
        return result

    def test_success(self) -> None:
        """A task that ended well has its value, its times, and the worker."""
        result = self.run_task(chores.add, 1, right=2)
        self.assertEqual(result.status, TaskResultStatus.SUCCESSFUL)
        self.assertTrue(result.is_finished)
        self.assertEqual(result.return_value, 3)
        self.assertEqual(
            (result.attempts, result.worker_ids, result.errors), (1, [worker_id()], [])
        )
        self.assertLessEqual(result.enqueued_at, result.started_at + timedelta(seconds=1))
        self.assertEqual(result.started_at, result.last_attempted_at)
        self.assertLessEqual(result.started_at, result.finished_at + timedelta(seconds=1))
        self.assertLess(timezone.now() - result.finished_at, timedelta(seconds=60))

    def test_kept_a_week(self) -> None:
        """Results stay for a week."""
        result = self.run_task(chores.add, 1)
        known = rota.tasks[result.task.module_path]
        self.assertEqual(known.keeps[self.queue].completed, 7 * 86400)
        self.assertEqual(rota.job(int(result.id)).status, State.COMPLETED)

    def test_failure(self) -> None:
        """A task that failed for good has the errors of all attempts."""
        result = self.run_task(chores.fail, "no money")
        self.assertEqual(result.status, TaskResultStatus.FAILED)
        self.assertEqual((result.attempts, result.worker_ids), (2, [worker_id()] * 2))
        self.assertEqual([error.exception_class for error in result.errors], [ValueError] * 2)
        self.assertIn("ValueError: no money", result.errors[0].traceback)
        self.assertIn("chores.py", result.errors[0].traceback)
        self.assertLessEqual(result.started_at, result.last_attempted_at)
        with self.assertRaisesRegex(ValueError, "failed"):
            _ = result.return_value

    def test_second_attempt(self) -> None:
        """A task that fails once keeps that error, and its context tells of it."""
        for task in (chores.fail_once, chores.fail_once_async):
            result = self.run_task(task)
            self.assertEqual(result.status, TaskResultStatus.SUCCESSFUL)
            self.assertEqual(result.return_value, [2, 1])
            self.assertEqual([error.exception_class for error in result.errors], [KeyError])
            self.assertEqual(result.attempts, 2)

    def test_value_that_is_no_json(self) -> None:
        """A value that JSON cannot hold is a failure that says so."""
        result = self.run_task(chores.unstorable)
        self.assertEqual(result.status, TaskResultStatus.FAILED)
        self.assertIn("Unsupported type", result.errors[0].traceback)

    def test_context(self) -> None:
        """A task that takes the context gets its own result, and any names."""
        result = self.run_task(chores.tell_context, "a", conn=1)
        value = result.return_value
        self.assertEqual(
            value, {"attempt": 1, "id": result.id, "words": ["a"], "named": {"conn": 1}}
        )

    def test_async(self) -> None:
        """A coroutine runs on the loop, and its ORM in Django's thread."""
        Order.objects.create(email="a@example.org", cents=1)
        result = self.run_task(chores.wait_and_count)
        self.assertEqual(result.return_value, 1)

    def test_cancelled(self) -> None:
        """A cancelled task has failed, without an attempt."""
        result = chores.add.using(queue_name=self.queue).enqueue(1)
        rota.job(int(result.id)).cancel()
        result.refresh()
        self.assertEqual((result.status, result.attempts), (TaskResultStatus.FAILED, 0))

    def test_unique_again(self) -> None:
        """A key is free once its task has ended."""
        first = self.run_task(chores.once, 1)
        second = self.run_task(chores.once, 1)
        self.assertNotEqual(first.id, second.id)

    def test_only_tasks_are_run(self) -> None:
        """A path that leads to no task of the backend is passed on, whatever it leads to."""
        names = (
            "tests.contrib.django.suite.chores.NOT_A_TASK",
            "tests.contrib.django.suite.chores.Any",
            "os.getcwd",
            "no.such.module",
        )
        for name in names:
            order = JobOrder(JobSpec(name, queue=self.queue), ['{"args":[],"kwargs":{}}'])
            rota.database.run(rota.database.store.enqueue(order))
            self.assertIsNone(rota.tasks.get(name))
        kept = chores.add.using(queue_name=self.queue).enqueue(1)
        from tests.fixtures.workers import until, working

        with working(rota, queues=(self.queue,)):
            until(lambda: chores.add.get_result(kept.id).is_finished, "the task to run")
        states = {job.task: job.state for job in jobs(self.queue)}
        self.assertEqual({states[name] for name in names}, {State.AVAILABLE})
        rota.database.run(rota.database.store.delete([JobId(job.id) for job in jobs(self.queue)]))

    def test_found_by_its_path(self) -> None:
        """A worker that has not imported a task's module finds it by the job."""
        path = chores.add.module_path
        result = chores.add.using(queue_name=self.queue).enqueue(2)
        del rota.tasks[path]
        self.drain()
        result.refresh()
        self.assertEqual(result.return_value, 3)


class Signals(WorkerTestCase):
    """What Django's receivers hear of a worker."""

    def setUp(self) -> None:
        super().setUp()
        self.heard: list[tuple[str, Any, Any]] = []
        for name, signal in (("started", task_started), ("finished", task_finished)):
            receiver = self.receiver(name)
            signal.connect(receiver, weak=False)
            self.addCleanup(signal.disconnect, receiver)

    def receiver(self, name: str) -> Any:
        def hear(sender: Any, task_result: Any, **kwargs: Any) -> None:
            del kwargs
            Order.objects.count()
            self.heard.append((name, sender, task_result))

        return hear

    def test_success(self) -> None:
        """A task begins once and ends once, and is settled when its end is told."""
        result = chores.add.using(queue_name=self.queue).enqueue(1)
        self.drain()
        (began, sender, running), (ended, _, finished) = self.heard
        self.assertEqual((began, ended, sender), ("started", "finished", RotaBackend))
        self.assertEqual(running.status, TaskResultStatus.RUNNING)
        self.assertEqual((running.id, running.attempts), (result.id, 1))
        self.assertEqual(finished.status, TaskResultStatus.SUCCESSFUL)
        self.assertEqual((finished.id, finished.return_value), (result.id, 2))
        self.assertEqual(finished.worker_ids, [worker_id()])
        self.assertIsNotNone(finished.finished_at)

    def test_failure(self) -> None:
        """Each attempt begins; the task ends once, with all its errors."""
        chores.fail.using(queue_name=self.queue).enqueue()
        self.drain()
        self.assertEqual([name for name, *_ in self.heard], ["started", "started", "finished"])
        self.assertEqual([result.attempts for *_, result in self.heard], [1, 2, 2])
        finished = self.heard[-1][2]
        self.assertEqual(finished.status, TaskResultStatus.FAILED)
        self.assertEqual([error.exception_class for error in finished.errors], [ValueError] * 2)

    def test_async(self) -> None:
        """Receivers of an async task may use the ORM, too."""
        chores.wait_and_count.using(queue_name=self.queue).enqueue()
        self.drain()
        self.assertEqual([name for name, *_ in self.heard], ["started", "finished"])

    def test_log(self) -> None:
        """Django logs what begins and ends."""
        chores.fail.using(queue_name=self.queue).enqueue()
        name = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"
        with self.assertLogs(name, "INFO") as logged:
            self.drain()
        self.assertIn("state=RUNNING", logged.output[0])
        self.assertTrue(logged.output[-1].startswith("ERROR"))
        self.assertIn("ValueError: no luck", logged.output[-1])
        self.assertEqual(rota.finishing.raised, {})


class Connections(WorkerTestCase):
    """Django's connections in a worker's threads."""

    def test_closed_around_each_job(self) -> None:
        """Handlers in one thread do not find what earlier ones left open."""
        task = chores.look_at_connection.using(queue_name=self.queue)
        results = [task.enqueue() for _ in range(3)]
        from tests.fixtures.workers import drained

        drained(rota, queues=(self.queue,), concurrency=1)
        for result in results:
            result.refresh()
        self.assertEqual([result.return_value for result in results], [False] * 3)

    def test_exactly_once(self) -> None:
        """`ctx.transaction` on Django's connection completes the job with the handler's rows."""
        job = chores.charge.using(queue=self.queue).enqueue("a@example.org")
        lost = chores.charge.using(queue=self.queue).enqueue("b@example.org", fails=True)
        self.drain()
        self.assertEqual(job.status, State.COMPLETED)
        self.assertEqual(lost.status, State.DISCARDED)
        self.assertEqual(list(Order.objects.values_list("email", flat=True)), ["a@example.org"])
        self.assertFalse(connection.needs_rollback)

    def test_exactly_once_inside_a_block(self) -> None:
        """With commit=False the handler's own block completes the job; without, that is refused."""
        inside = chores.charge_inside.using(queue=self.queue)
        job = inside.enqueue("a@example.org", commit=False)
        refused = inside.enqueue("b@example.org", commit=True)
        self.drain()
        self.assertEqual(job.status, State.COMPLETED)
        self.assertIn("let ctx.transaction(conn=...) begin it", refused.record().errors[0].message)
        self.assertEqual(set(Order.objects.values_list("email", flat=True)), {"a@example.org"})
        self.assertEqual(Order.objects.count(), 2)

    def test_exactly_once_refused(self) -> None:
        """commit=False outside of a block, and async code, are told what to do."""
        outside = chores.charge_outside.using(queue=self.queue).enqueue()
        awaited = chores.charge_async.using(queue=self.queue).enqueue()
        self.drain()
        self.assertIn("django.db.transaction.atomic()", outside.record().errors[0].message)
        self.assertIn("write a def", awaited.record().errors[0].message)
        self.assertEqual(Order.objects.count(), 0)
