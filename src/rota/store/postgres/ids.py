"""The ids that a statement takes for many jobs."""

from collections.abc import Sequence

from rota.model.job import JobId


def taken(ids: Sequence[int], count: int) -> list[JobId]:
    """So many ids, in rising order; of a run without gaps the statement tells only the first."""
    jobs = ids if len(ids) == count else range(ids[0], ids[0] + count)
    return list(jobs)  # type: ignore[arg-type]
