"""Asking for work: the part of the seam that enqueues, finds and changes jobs, and sets queues."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from rota.model.enqueued import Enqueued
from rota.model.job import Cleared, JobFilter, JobId, JobRecord, Order, QueueRecord, Reach
from rota.model.notes import ToldNote
from rota.model.queue_settings import QueueSettings
from rota.model.states import State
from rota.store.operation import Operation


class Asking(Protocol):
    """What a store does for those who enqueue jobs, look at them and act on them."""

    def enqueue(self, order: Order) -> Operation[Enqueued]:
        """Store the jobs of an order; the id of each, in the same order, and what became of it.

        Raises:
            JobExists: A unique key is taken, and its rule says that this is an error.
        """
        ...

    def get(self, jobs: Sequence[JobId]) -> Operation[list[JobRecord]]:
        """The jobs with these ids, in the order asked for; ids of no job are left out.

        Without what their handlers told: `notes` has that.
        """
        ...

    def notes(self, jobs: Sequence[JobId]) -> Operation[dict[JobId, list[ToldNote]]]:
        """What handlers told of their runs, by job: progress and lines, in no order.

        Of each job at least the newest progress and the newest lines, as many as are kept.
        """
        ...

    def list_jobs(self, wanted: JobFilter) -> Operation[list[JobRecord]]:
        """The newest jobs first, at most `wanted.limit` of them.

        Fewer: there are no more.
        """
        ...

    def reach(self, wanted: JobFilter, most: int) -> Operation[Reach]:
        """Where to look for such jobs, so that no listing reads more than about `most` of them.

        Its `until` is that of `wanted` or lower, where there are none above.
        """
        ...

    def count_jobs(self, wanted: JobFilter) -> Operation[int]:
        """How many such jobs there are; reads them, where `queues` only adds up. No limit counts."""
        ...

    def count_listed(self, wanted: JobFilter) -> Operation[int]:
        """How many jobs `list_jobs` would give, without their being read; a limit counts."""
        ...

    def cancel(
        self,
        jobs: Sequence[JobId],
        keep: Mapping[str, float] | None = None,
        *,
        only: State | None = None,
    ) -> Operation[dict[JobId, State]]:
        """Cancel jobs that have not started, ask running ones to stop.

        A cancelled job stays readable as long as is set for its queue, else as `keep` says for
        single queues (in seconds), else a day; for a minute at the least. Returns the state of each
        job it found afterwards: `cancelled`, or `running` where the request now waits for the
        worker, or the finished state in which the job was anyway.

        `only`: those alone that are in this state just then, and no others are in the answer.
        """
        ...

    def retry(
        self, jobs: Sequence[JobId], *, only: State | None = None, alone: bool = False
    ) -> Operation[list[JobId]]:
        """Make jobs available now, with all their attempts: finished ones and waiting ones.

        A failed or cancelled job stays as it is if a retry of its flow would run it again: its node
        has ended, and would wait for it no more. With `alone` it becomes available, too, and leaves
        its flow for good.

        `only`: those alone that are in this state just then.
        """
        ...

    def delete(self, jobs: Sequence[JobId], *, only: State | None = None) -> Operation[list[JobId]]:
        """Remove jobs that are not running, and all that is known of them; `only` as in `retry`."""
        ...

    def queues(self) -> Operation[list[QueueRecord]]:
        """All queues that ever had a job, a setting or a pause, by name, with their counts.

        The counts are exact in one moment, and cost the same whatever the number of jobs.
        """
        ...

    def queue_names(self) -> Operation[list[str]]:
        """All queues that ever had a job, a setting or a pause, in no order; cheaper than `queues`."""
        ...

    def pause(self, queue: str) -> Operation[bool]:
        """Stop claims from a queue; false if it was already paused. Creates the queue."""
        ...

    def resume(self, queue: str) -> Operation[bool]:
        """Allow claims from a queue again; false if it was not paused."""
        ...

    def set_queue(
        self, queue: str, changes: Mapping[str, float | None]
    ) -> Operation[QueueSettings]:
        """Set some of a queue's settings, by their names; `None` takes one away.

        Creates the queue. Returns what is set for it afterwards.
        """
        ...

    def queue_settings(self) -> Operation[dict[str, QueueSettings]]:
        """What is set for single queues; those of which nothing is set are left out."""
        ...

    def last_job(self) -> Operation[JobId]:
        """The highest id that was given to a job; 0 where there was none."""
        ...

    def clear(
        self, queue: str, state: State, *, after: JobId, until: JobId, limit: int
    ) -> Operation[Cleared]:
        """Delete up to `limit` jobs of a queue that are in a state, those with small ids first.

        It begins behind `after` and ends with `until`. Running jobs are never deleted. What moves
        on meanwhile is left alone.
        """
        ...
