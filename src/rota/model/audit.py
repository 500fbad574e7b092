"""What people did on the dashboard: a deed as it is written down, and as it is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from rota.model.job import JobId

KEPT = 10_000
"""Deeds that stay; each new one removes what is older."""

LONGEST_NAME = 200
"""Characters of who did it."""


class Deed(NamedTuple):
    """Something that was done.

    Attributes:
        who: What `access` says; empty: it does not say.
        action: Such as `jobs-retry`, `queue-pause`.
        what: To what it was done: a name, ids of jobs, or what jobs were found by.
        changed: How many jobs, queues or entries that has changed.
        job: The job that carries it out, where it is done to everything that matches.
    """

    who: str
    action: str
    what: Mapping[str, str]
    changed: int = 0
    job: JobId | None = None


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """A deed in the audit.

    Attributes:
        changed: How many jobs were changed; so far, if a job carries out the deed.
    """

    id: int
    at: datetime
    who: str
    action: str
    what: Mapping[str, str]
    changed: int
    job: JobId | None


def plain_name(who: str) -> str:
    """A name that every database can hold, on one line."""
    return "".join(one for one in who if one.isprintable())[:LONGEST_NAME]
