"""One page of jobs, at a cost that does not grow with the jobs there are.

Jobs are found by walking back from the newest. Where a filter leaves few of them, that could go on
to the first job there ever was, so a page walks back over so many jobs at the most, and says up to
where it looked; the next page goes on from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rota.database.database import Database
from rota.model.job import JobFilter, JobId, JobRecord

SIZE = 50
"""Jobs on a page."""

BOUND = 10_000
"""Jobs that one page looks at."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One page.

    Attributes:
        further: The page that follows has jobs below this id; `None`: there are no more.
        full: Whether the page has as many jobs as fit; else it ends where looking ended.
    """

    jobs: Sequence[JobRecord]
    further: JobId | None
    full: bool


def listing(database: Database, wanted: JobFilter, before: JobId | None) -> Listing:
    """The newest of these jobs, with ids below `before`."""
    wanted = replace(wanted, after=before, limit=SIZE)
    jobs, since = newest(database, wanted, BOUND)
    if len(jobs) == SIZE:
        return Listing(jobs, jobs[-1].id, full=True)
    return Listing(jobs, since, full=False)


def newest(
    database: Database, wanted: JobFilter, bound: int
) -> tuple[Sequence[JobRecord], JobId | None]:
    """The newest of these jobs among `bound`, and up to where that was; `None`: there are no more."""
    jobs, further, known = _look(database, wanted, bound)
    if known and not jobs:
        # It is known where the next ones are, so nobody has to ask for a page of them.
        jobs, further, _ = _look(database, replace(wanted, after=further), bound)
    return jobs, further


def _look(
    database: Database, wanted: JobFilter, bound: int
) -> tuple[Sequence[JobRecord], JobId | None, bool]:
    """One look, where the next one goes on, and whether there is something there."""
    store = database.store
    until, since, beyond = database.run(store.reach(wanted, bound))
    after = JobId(until + 1) if until < wanted.until else wanted.after
    # From a lowest id on, even if it is the first: SQLite walks by ids then, and not all that is
    # available.
    found = replace(wanted, after=after, since=since or JobId(1), brief=True)
    return database.run(store.list_jobs(found)), beyond or since, beyond is not None
