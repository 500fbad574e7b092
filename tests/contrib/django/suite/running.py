"""What tests of several kinds need: a queue of their own, and workers that empty it."""

import itertools

from django.db import connection
from django.test import TransactionTestCase

from rota import JobRecord
from rota.contrib.django import rota
from rota.contrib.django.address import IN_MEMORY
from rota.model.job import JobFilter
from tests.fixtures.workers import drained

numbers = itertools.count(1)


class WorkerTestCase(TransactionTestCase):
    """A queue for each test: Django empties its own tables after a test, and no others."""

    def setUp(self) -> None:
        super().setUp()
        if rota.url == IN_MEMORY:
            self.skipTest("no worker reaches a database in memory")
        self.queue = f"queue-{next(numbers)}"
        self.addCleanup(rota.close)

    def drain(self) -> None:
        """Run what there is, with a worker in this process."""
        drained(rota, queues=(self.queue,))


def jobs(queue: str) -> list[JobRecord]:
    """The jobs of a queue, as this connection sees them."""
    database = rota.database
    return database.run(database.store.list_jobs(JobFilter(queue=queue, limit=5000)), connection)
