"""Where a job stands that does not run: facts alone, of which `rota.doctor.why` makes reasons."""

from dataclasses import dataclass, replace

from rota.model.job import JobId
from rota.model.limit_record import LimitRecord

MOST = 1_000
"""Up to how many jobs before a job are counted."""

HOLDERS = 20
"""Up to how many of the jobs are named that have a limit's places."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a job stands.

    Attributes:
        ahead: How many available jobs start before it in its lane; from `MOST` on there may be
            more.
        of_key: Whether the lane is one of a key: of a limit, or of a fair share.
        knowing: The sessions that know its task, or do not say which tasks they know.
        holders: Some of the jobs that have places of its limit.
    """

    ahead: int
    of_key: bool
    knowing: tuple[int, ...] = ()
    limit: LimitRecord | None = None
    holders: tuple[JobId, ...] = ()

    def anonymous(self) -> "Standing":
        """The same without the limit's key, which is made of args."""
        return self if self.limit is None else replace(self, limit=replace(self.limit, key=""))
