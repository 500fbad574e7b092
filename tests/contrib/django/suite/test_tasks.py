"""The backend of Django's tasks, in a test's transaction: what Django asks of its own backends."""

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import skipUnless

import django
from asgiref.sync import async_to_sync
from django.db import transaction
from django.test import TestCase, override_settings
from django.utils import timezone

from rota import ArgsError, State
from rota.contrib.django import rota
from rota.contrib.django.backend import RotaBackend, RotaTask
from rota.contrib.django.tasks_api import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from tests.contrib.django.suite import chores, others

WEEK = timedelta(days=7).total_seconds()


class Undo(Exception):
    """Rolls a block back."""


class Declaring(TestCase):
    """What a task is, and which tasks are refused."""

    def test_backend(self) -> None:
        """The backend of the settings is Rota's, and can do all that Django asks for."""
        backend = task_backends["default"]
        self.assertIsInstance(backend, RotaBackend)
        self.assertTrue(backend.supports_defer)
        self.assertTrue(backend.supports_async_task)
        self.assertTrue(backend.supports_get_result)
        self.assertTrue(backend.supports_priority)
        self.assertEqual(list(backend.check()), [])

    def test_declared(self) -> None:
        """A task is known to the app's workers under its module path, as declared."""
        known = rota.tasks[chores.urgent.module_path]
        self.assertIsInstance(chores.urgent, RotaTask)
        self.assertEqual(known.options.queue, "mail")
        self.assertEqual(known.options.priority, -70)
        self.assertEqual(rota.tasks[chores.once.module_path].keeps["default"].completed, WEEK)

    def test_call(self) -> None:
        """A task can be called directly."""
        self.assertEqual(chores.add.call(1, right=2), 3)

    def test_using(self) -> None:
        """`using` gives another task, with the same options of Rota's."""
        later = chores.once.using(priority=5, queue_name="other")
        self.assertEqual((later.priority, later.queue_name), (5, "other"))
        self.assertEqual(later.rota, chores.once.rota)
        self.assertEqual(chores.once.priority, 0)
        self.assertEqual(hash(later), hash(chores.once.using(priority=5, queue_name="other")))

    @skipUnless(django.VERSION >= (6, 1), "tasks can be pickled from Django 6.1 on")
    def test_pickle(self) -> None:
        """A task comes back from a pickle with its options."""
        self.assertEqual(pickle.loads(pickle.dumps(chores.once)), chores.once)  # noqa: S301

    def test_refused_functions(self) -> None:
        """A task that no worker could import is refused where it is declared."""
        with self.assertRaisesRegex(InvalidTask, "module level"):
            chores.task(lambda: None)

        def inner() -> None: ...

        with self.assertRaisesRegex(InvalidTask, "module level"):
            chores.task(inner)
        with self.assertRaisesRegex(InvalidTask, "context"):
            chores.task(takes_context=True)(others.without_context)

    def test_refused_options(self) -> None:
        """An option of Rota's that cannot be used is refused where the task is declared."""
        for options, said in (
            ({"uniqe": "x"}, "unknown option uniqe; there are fair"),
            ({"unique": "order:{ordre}"}, "names 'ordre', which is not an argument"),
            ({"max_attempts": 0}, "max_attempts"),
            ({"executor": "process"}, "unknown option executor"),
        ):
            with self.assertRaisesRegex(InvalidTask, said):
                others.declare(options)

    def test_refused_priorities_and_times(self) -> None:
        """Priorities are Django's, from -100 to 100, and times are aware."""
        for priority in (-101, 101, 1.5):
            with self.assertRaises(InvalidTask):
                chores.add.using(priority=priority)
        with self.assertRaises(InvalidTask):
            chores.add.using(run_after=datetime(2030, 1, 1))

    @override_settings(TASKS={"default": {"BACKEND": "rota.contrib.django.backend.RotaBackend"}})
    def test_queues(self) -> None:
        """Without QUEUES the one queue is `default`, as Django has it."""
        chores.add.using(queue_name="default")
        with self.assertRaisesRegex(InvalidTask, "Queue 'mail' is not valid"):
            chores.add.using(queue_name="mail")

    def test_another_backends_task(self) -> None:
        """A task of another backend is refused: this one's workers would not run it."""
        tasks = {
            "default": {"BACKEND": "rota.contrib.django.backend.RotaBackend"},
            "other": {
                "BACKEND": f"{task_backends.__class__.__module__}.backends.dummy.DummyBackend"
            },
        }
        with override_settings(TASKS=tasks):
            stranger = others.of_another_backend()
            with self.assertRaisesRegex(InvalidTask, "not declared as a task of the backend"):
                stranger.using(backend="default").enqueue()


class Enqueueing(TestCase):
    """Storing tasks, and looking at them."""

    def test_enqueue(self) -> None:
        """A result says what was stored, and that nothing has run yet."""
        before = timezone.now()
        result = chores.add.enqueue(1, right=2)
        for seen in (result, task_backends["default"].get_result(result.id)):
            self.assertEqual(seen.status, TaskResultStatus.READY)
            self.assertFalse(seen.is_finished)
            self.assertEqual((seen.args, seen.kwargs), ([1], {"right": 2}))
            self.assertEqual(seen.task.func, chores.add.func)
            self.assertEqual(seen.backend, "default")
            self.assertLess(abs(seen.enqueued_at - before), timedelta(seconds=60))
            self.assertIsNone(seen.started_at)
            self.assertIsNone(seen.finished_at)
            self.assertIsNone(seen.last_attempted_at)
            self.assertEqual((seen.attempts, seen.errors, seen.worker_ids), (0, [], []))
            with self.assertRaisesRegex(ValueError, "not finished"):
                _ = seen.return_value
        self.assertTrue(result.id.isdecimal())

    def test_enqueue_async(self) -> None:
        """The same for async code, in the same transaction."""

        async def enqueue() -> Any:
            result = await chores.add.aenqueue(1)
            await result.arefresh()
            return await chores.add.aget_result(result.id)

        self.assertEqual(async_to_sync(enqueue)().args, [1])

    def test_async_task(self) -> None:
        """A coroutine can be a task."""
        self.assertEqual(chores.wait_and_count.enqueue().status, TaskResultStatus.READY)

    def test_args_are_normalized(self) -> None:
        """Args come back as JSON has them."""
        result = chores.add.enqueue((1, 2), right={"a": (b"b",)})
        self.assertEqual((result.args, result.kwargs), ([[1, 2]], {"right": {"a": ["b"]}}))
        again = chores.add.get_result(result.id)
        self.assertEqual((again.args, again.kwargs), (result.args, result.kwargs))

    def test_args_that_are_no_json(self) -> None:
        """Args that JSON cannot hold are refused, and nothing is stored."""
        for value in (object(), datetime.now(UTC), b"\xff"):
            with self.assertRaises((TypeError, ValueError)):
                chores.add.enqueue(value)

    def test_any_name(self) -> None:
        """Names that mean something to Rota are args like any other."""
        result = chores.tell_context.enqueue("a", conn=1, args=2, kwargs=3)
        again = chores.tell_context.get_result(result.id)
        self.assertEqual(again.kwargs, {"conn": 1, "args": 2, "kwargs": 3})

    def test_get_result(self) -> None:
        """Only the task's own results are given; what is no result is none."""
        result = chores.add.enqueue(1)
        with self.assertRaises(Exception) as raised:
            chores.urgent.get_result(result.id)
        self.assertEqual(type(raised.exception).__name__, "TaskResultMismatch")
        note = chores.note.enqueue(1)
        for missing in (
            "0",
            "999999999999",
            "123456789012345678901234567890",
            "no number",
            "²",
            "",
            str(note.id),
        ):
            with self.assertRaises(TaskResultDoesNotExist):
                task_backends["default"].get_result(missing)

    def test_priority(self) -> None:
        """Django's higher priorities come first; in Rota the smaller ones do."""
        record = rota.job(int(chores.urgent.enqueue().id)).record()
        self.assertEqual((record.priority, record.queue), (-70, "mail"))
        changed = rota.job(int(chores.add.using(priority=-100).enqueue(1).id)).record()
        self.assertEqual(changed.priority, 100)

    def test_run_after(self) -> None:
        """A task waits for its time, and is ready meanwhile."""
        at = timezone.now() + timedelta(hours=2)
        result = chores.add.using(run_after=at).enqueue(1)
        result.refresh()
        self.assertEqual(result.status, TaskResultStatus.READY)
        record = rota.job(int(result.id)).record()
        self.assertEqual(record.state, State.SCHEDULED)
        assert record.scheduled_at is not None
        self.assertLess(abs(record.scheduled_at - at), timedelta(seconds=1))

    def test_naive_times(self) -> None:
        """Without USE_TZ times are naive, and mean the project's time zone."""
        with self.settings(USE_TZ=False):
            at = datetime.now() + timedelta(hours=2)
            result = chores.add.using(run_after=at).enqueue(1)
            result.refresh()
            self.assertIsNone(result.enqueued_at.tzinfo)
            record = rota.job(int(result.id)).record()
        assert record.scheduled_at is not None
        self.assertEqual(
            record.scheduled_at.replace(microsecond=0),
            timezone.make_aware(at).replace(microsecond=0),
        )

    def test_rolls_back(self) -> None:
        """A task is gone with the block in which it was enqueued."""
        with self.assertRaises(Undo), transaction.atomic():
            result = chores.add.enqueue(1)
            raise Undo
        with self.assertRaises(TaskResultDoesNotExist):
            chores.add.get_result(result.id)

    def test_unique(self) -> None:
        """Rota's options hold: the second enqueue of a key gives the first one's result."""
        heard: list[str] = []

        def hear(sender: Any, task_result: Any, **kwargs: Any) -> None:
            del sender, kwargs
            heard.append(task_result.id)

        task_enqueued.connect(hear)
        try:
            first = chores.once.enqueue(7, note="first")
            second = chores.once.enqueue(order=7)
            other = chores.once.using(priority=3).enqueue(8)
            again = chores.once.using(priority=3).enqueue(8)
        finally:
            task_enqueued.disconnect(hear)
        self.assertEqual((first.id, other.id), (second.id, again.id))
        self.assertEqual(second.kwargs, {"note": "first"})
        self.assertEqual(heard, [first.id, other.id])
        with self.assertRaisesRegex(ArgsError, "missing a required argument"):
            chores.once.enqueue()

    def test_signal(self) -> None:
        """`task_enqueued` comes from the backend's class, with the result."""
        heard: list[Any] = []

        def hear(sender: Any, task_result: Any, **kwargs: Any) -> None:
            del kwargs
            heard.append((sender, task_result))

        task_enqueued.connect(hear)
        try:
            result = chores.add.enqueue(1)
        finally:
            task_enqueued.disconnect(hear)
        self.assertEqual(heard, [(RotaBackend, result)])

    def test_log(self) -> None:
        """Django logs what is enqueued."""
        name = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"
        with self.assertLogs(name, "DEBUG") as logged:
            result = chores.add.enqueue(1)
        self.assertIn(
            f"id={result.id} path=tests.contrib.django.suite.chores.add", logged.output[0]
        )
