"""Suspects: how the job that kills its workers is found, without punishing the jobs beside it.

A worker that died held many jobs, and one of them may have killed it. Nothing was written when they
began, so all of them are *suspects*: they come back unspent, with a note of how many they were. A
worker runs suspects apart from all other jobs, in lots of an eighth of that number, and writes down
which lot it begins. If it dies again, those of the lot are the only suspects; a job that was alone
when its worker died is to blame, and only then an attempt is spent. (Group testing, after R.
Dorfman, The Detection of Defective Members of Large Populations, 1943.)

Known weakness: a job is alone as well where its worker was killed from outside while it held
nothing else, and an attempt is spent.
"""

from collections.abc import Sequence
from itertools import takewhile

from rota.model.job import ClaimedJob

SHARE = 8
"""A lot is this share of the suspects: 500 are one after three more deaths."""


def first_lot(suspects: Sequence[ClaimedJob]) -> list[ClaimedJob]:
    """Which of these to run first, and together: suspects of the same deaths."""
    number = suspects[0].suspects or 1
    alike = takewhile(lambda job: (job.suspects or 1) == number, suspects)
    return list(alike)[: max(1, number // SHARE)]


def death_message(worker: str, begun: int, *, spent: bool) -> str:
    """What stands in the errors of a job that a worker held when it died, with `begun - 1` others."""
    if spent:
        return f"the worker {worker} died or was cut off during this attempt"
    return (
        f"the worker {worker} died or was cut off while it held {begun} jobs; no attempt is spent, and "
        "this job runs apart from others next time"
    )
