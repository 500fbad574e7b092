"""What joins a transaction of Django's besides an enqueue: flows, signals, cron entries, queues."""

import itertools
from typing import Any

from asgiref.sync import async_to_sync
from django.db import transaction
from django.test import TransactionTestCase

from rota import FlowHandle, FlowNotFound, FlowState, State
from rota.contrib.django import rota
from tests.contrib.django.suite.chores import note
from tests.contrib.django.suite.running import jobs
from tests.contrib.django.suite.test_enqueue import Undo, seen_elsewhere

numbers = itertools.count(1)


class Joining(TransactionTestCase):
    """Outside of a test's transaction, so that blocks are those of the application."""

    def setUp(self) -> None:
        self.queue = f"joining-{next(numbers)}"
        self.note: Any = note.using(queue=self.queue)
        self.addCleanup(rota.close)

    def flow(self) -> FlowHandle:
        with rota.flow("two") as flow:
            flow.add(self.note, 2, after=[flow.add(self.note, 1)])
            flow.map(self.note, [])
        return flow.handle

    def test_a_flow(self) -> None:
        """It is gone with its block, and is there once that commits."""
        with self.assertRaises(Undo), transaction.atomic():
            flow = self.flow()
            self.assertEqual(flow.state, FlowState.RUNNING)
            self.assertEqual(flow.job("note").record().state, State.AVAILABLE)
            self.assertIn(flow.id, [one.id for one in rota.flows.list()])
            raise Undo
        self.assertEqual(jobs(self.queue), [])
        with self.assertRaises(FlowNotFound):
            flow.record()
        with transaction.atomic():
            flow = self.flow()
            self.assertEqual(seen_elsewhere(self.queue), 0)
        self.assertEqual(seen_elsewhere(self.queue), 2)

    def test_without_atomic(self) -> None:
        """Outside of a block it is stored at once."""
        self.assertEqual(self.flow().state, FlowState.RUNNING)
        self.assertEqual(seen_elsewhere(self.queue), 2)

    def test_a_flow_is_cancelled_and_retried(self) -> None:
        """Both are taken back with their block."""
        flow = self.flow()
        with self.assertRaises(Undo), transaction.atomic():
            self.assertTrue(flow.cancel())
            self.assertEqual(flow.state, FlowState.CANCELLED)
            raise Undo
        self.assertEqual(flow.state, FlowState.RUNNING)
        with transaction.atomic():
            flow.cancel()
        self.assertEqual(flow.state, FlowState.CANCELLED)
        with self.assertRaises(Undo), transaction.atomic():
            self.assertEqual(flow.retry(), 1)
            self.assertEqual(flow.state, FlowState.RUNNING)
            raise Undo
        self.assertEqual(flow.state, FlowState.CANCELLED)
        with transaction.atomic():
            flow.retry()
        self.assertEqual(flow.job("note").record().state, State.AVAILABLE)

    def test_async(self) -> None:
        """Async code has the transaction of the thread of Django's ORM."""

        async def build() -> FlowHandle:
            async with rota.flow("one") as flow:
                flow.add(self.note, 1)
            await flow.handle.acancel()
            self.assertEqual(await flow.handle.astate(), FlowState.CANCELLED)
            return flow.handle

        with self.assertRaises(Undo), transaction.atomic():
            flow = async_to_sync(build)()
            raise Undo
        with self.assertRaises(FlowNotFound):
            flow.record()
        async_to_sync(build)()

    def test_a_signal(self) -> None:
        """It reaches its job if the block commits."""
        job = self.note.enqueue(1)
        with self.assertRaises(Undo), transaction.atomic():
            job.signal("paid", 12)
            self.assertEqual([step.name for step in job.steps()], ["paid"])
            raise Undo
        self.assertEqual(job.steps(), [])
        with transaction.atomic():
            job.signal("paid", 12)
        self.assertEqual([step.name for step in job.steps()], ["paid"])

    def test_listings(self) -> None:
        """They show what the block has done so far."""
        with self.assertRaises(Undo), transaction.atomic():
            job = self.note.enqueue(1)
            self.assertEqual([one.id for one in rota.jobs.list(queue=self.queue)], [job.id])
            self.assertEqual(rota.jobs.count(queue=self.queue, task="note"), 1)
            self.assertEqual(rota.jobs.count(queue=self.queue), 1)
            raise Undo
        self.assertEqual(rota.jobs.count(queue=self.queue), 0)

    def test_cron_and_queues(self) -> None:
        """An entry is added, a queue paused, a setting made if the block commits."""
        queue = rota.queue(self.queue)
        self.note.enqueue(1)
        with self.assertRaises(Undo), transaction.atomic():
            rota.cron.add(self.queue, "@hourly", note, args={"number": 1})
            rota.cron.pause(self.queue)
            queue.pause()
            queue.set(concurrency=3)
            raise Undo
        self.assertNotIn(self.queue, [entry.name for entry in rota.cron.entries()])
        self.assertIsNone(queue.settings().concurrency)
        [found] = [one for one in rota.admin.queues() if one.name == self.queue]
        self.assertFalse(found.paused)
