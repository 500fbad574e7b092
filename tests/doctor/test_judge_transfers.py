"""Findings about transfers between databases that were left."""

import pytest

from rota.doctor.finding import Severity
from rota.model.job import JobId
from rota.store.health import TransferFacts
from tests.doctor import facts as given


@pytest.mark.parametrize(
    ("oldest", "severities"),
    [(59.0, []), (61.0, [Severity.WARNING]), (601.0, [Severity.CRITICAL])],
)
def test_transfers_that_were_left(oldest: float, severities: list[Severity]) -> None:
    """One that a mover has just begun is nothing; one that waits is named, with the job to look at."""
    work = given.work(transfers=TransferFacts(2, oldest, JobId(17)))
    found = given.wrong(given.postgres(work=work))
    assert [one.severity for one in found] == severities
    for one in found:
        assert one.title == "Jobs wait in 2 transfers to another shard that no mover has finished"
        assert one.advice == "rota jobs show 17"
