"""One action on all jobs that match, at a cost for each step that does not grow with the jobs there are.

It walks back from the newest job, in pages by id, and acts on each page in a short transaction of
its own, on those jobs alone that are still in the state in which they were found. Jobs that came
after it was asked for are left out.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rota.app.acting import BATCH, CANCEL, DELETE, RETRY, Kind, states_of
from rota.app.matching import Matching
from rota.model.flow import Membership
from rota.model.job import JobFilter, JobId, JobRecord
from rota.model.states import State
from rota.store.operation import Operation

if TYPE_CHECKING:
    from rota.app.app import Rota

KINDS = {kind.name: kind for kind in (RETRY, CANCEL, DELETE)}

REACH = 10_000
"""Jobs that one statement looks at."""

COUNTED = 10_000
"""Up to so many jobs are counted, where no counter knows them."""

LOOKED_AT = 20_000
"""Among so many jobs of all the states together, since someone waits for the number."""

LOOKED_INTO = 1_000
"""Among so many where each has to be read."""


class Count(NamedTuple):
    """How many jobs there are: `jobs` if that is `exact`, else at least so many of `total`."""

    jobs: int
    total: int
    exact: bool

    def __str__(self) -> str:
        if self.exact:
            return f"{self.jobs:,} job{'' if self.jobs == 1 else 's'}"
        some = "more than" if self.jobs >= COUNTED else "at least"
        return f"{f'{some} {self.jobs:,}' if self.jobs else 'some'} of {self.total:,} jobs"


class Page(NamedTuple):
    """Jobs to act on together.

    Attributes:
        position: Where the next page goes on.
        share: How much of everything has been looked at then, as ids tell.
    """

    state: State
    jobs: Sequence[JobId]
    position: str
    share: float


class Bulk:
    """An action on everything that matches.

    Args:
        until: The last job that is meant.
        besides: A job that is not: the one that does all this.
        alone: Also retry jobs that are left to a retry of their flow.

    Raises:
        ConfigError: Nothing is said to find jobs by, or jobs in that state cannot be acted on so.
    """

    def __init__(
        self,
        app: "Rota",
        kind: Kind,
        matching: Matching,
        until: JobId,
        *,
        besides: JobId | None = None,
        alone: bool = False,
    ) -> None:
        self._app = app
        self._database = app.database
        self._kind = kind
        self._matching = matching
        self._until = until
        self._besides = besides
        self._alone = alone
        said = any((matching.cause, matching.wanted != JobFilter()))
        self.states = states_of(kind, matching.wanted.state, said=said)

    def count(self) -> Count:
        """How many jobs it would be."""
        queue = self._matching.wanted.queue
        total = sum(
            record.counts.get(state, 0)
            for record in self._app.admin.queues()
            if queue in {None, record.name}
            for state in self.states
        )
        if self._matching.counted or not total:
            return Count(total, total, exact=True)
        found, exact = self._count_listed() if self._matching.cause is None else self._count_read()
        return Count(found, max(total, found), exact)

    def _count_read(self) -> tuple[int, bool]:
        found = 0
        for number, page in enumerate(self.pages(), start=1):
            found += len(page.jobs)
            if number * BATCH >= LOOKED_INTO:
                return found, False
        return found, True

    def _count_listed(self) -> tuple[int, bool]:
        found, exact = 0, True
        share = LOOKED_AT // len(self.states)
        most = min(share, REACH)
        for state in self.states:
            lowest = 1
            for wanted in islice(self._windows(state, self._after, most), share // most):
                limited = replace(wanted, limit=COUNTED + 1 - found)
                found += self._database.run(self._database.store.count_listed(limited))
                if found > COUNTED:
                    return COUNTED, False
                lowest = wanted.lowest
            exact = exact and lowest == 1
        return found, exact

    def pages(self, position: str | None = None) -> Iterator[Page]:
        """All jobs, the newest of each state first, from a position on."""
        states, after = list(self.states), self._after
        if position is not None:
            state, _, last = position.partition(" ")
            states, after = states[states.index(State(state)) :], JobId(int(last))
        for state in states:
            for wanted in self._windows(state, after, REACH):
                yield from self._pages(state, wanted)
            after = self._after

    def act(self, page: Page) -> Operation[Collection[JobId]]:
        """Act on a page; the jobs that were changed."""
        store, jobs = self._database.store, page.jobs
        if self._kind is CANCEL:
            return store.cancel(jobs, self._app.queues.cancelled(), only=page.state)
        if self._kind is RETRY:
            return store.retry(jobs, only=page.state, alone=self._alone)
        return store.delete(jobs, only=page.state)

    def left(self, page: Page, changed: int) -> dict[JobId, Membership]:
        """The jobs of a page that are left to a retry of their flow, when so many were changed."""
        if self._kind is not RETRY or self._alone or changed == len(page.jobs):
            return {}
        return self._app.flows.left_to_retry(
            self._database.run(self._database.store.get(page.jobs))
        )

    @property
    def _after(self) -> JobId:
        return JobId(self._until + 1)

    def _windows(self, state: State, after: JobId, most: int) -> Iterator[JobFilter]:
        """One filter after another, each of which has at most so many jobs to look at."""
        last: JobId | None = after
        while last is not None:
            wanted = replace(self._matching.wanted, state=state, after=last)
            until, since, _ = self._database.run(self._database.store.reach(wanted, most))
            first = JobId(min(until + 1, last))
            yield replace(wanted, after=first, since=since or JobId(1))
            last = since

    def _pages(self, state: State, wanted: JobFilter) -> Iterator[Page]:
        # Causes are told by the ends of errors: as lists have them, and not by all that a job may
        # bring.
        wanted = replace(wanted, limit=BATCH, brief=True)
        while True:
            found = self._database.run(self._database.store.list_jobs(wanted))
            last = found[-1].id if len(found) == BATCH else JobId(wanted.lowest)
            yield self._page(state, found, last)
            if len(found) < BATCH:
                return
            wanted = replace(wanted, after=last)

    def _page(self, state: State, found: Sequence[JobRecord], last: JobId) -> Page:
        meant = [job.id for job in found if self._matching.has(job) and job.id != self._besides]
        before = self.states.index(state)
        share = (before + (self._until - last + 1) / max(self._until, 1)) / len(self.states)
        return Page(state, meant, f"{state.value} {last}", min(max(share, 0.0), 1.0))
