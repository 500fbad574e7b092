"""From what was seen to metrics: no I/O."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.cron.entry import CronEntry, CronRecord
from rota.doctor.examine import judge
from rota.metrics.families import MOST_QUEUES, families
from rota.metrics.seen import Seen
from rota.model.job import QueueRecord
from rota.model.states import State
from rota.store.health import Facts, HolderFacts, HorizonFacts
from rota.top.snapshot import Snapshot
from tests.doctor.facts import lane, postgres, session, sqlite, table

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def seen(facts: Facts | None = None, cron: Any = (), **snapshot: Any) -> Seen:
    """A look that has seen this."""
    facts = postgres() if facts is None else facts
    looked = Snapshot(NOW, 0.0, 0.0, "", **snapshot)
    return Seen(looked, cron, 0.25, NOW, facts, judge(facts, hears=None))


def samples(what: Seen) -> Mapping[tuple[str, ...], float]:
    """The values of all samples, by name and labels."""
    found: dict[tuple[str, ...], float] = {}
    for family in families(what):
        for sample in family.samples:
            key = (sample.name, *sample.labels.values())
            assert key not in found, "a sample came twice"
            found[key] = sample.value
    return found


def test_queues() -> None:
    """Counts by state, running totals, pauses, the oldest job, and the workers that serve each."""
    mail = QueueRecord("mail", True, {State.AVAILABLE: 3, State.DISCARDED: 1}, 10, 7)
    found = samples(
        seen(
            queues=(mail, QueueRecord("tenant-1", paused=False)),
            lanes=(lane(oldest=5.0), lane(oldest=70.0, priority=1), lane(queue="tenant-1")),
            workers=(
                session(queues=("mail",)),
                session(queues=("tenant-*", "mail")),
                session(queues=("mail",), silent=60.0),
            ),
        )
    )
    assert found["rota_jobs", "mail", "available"] == 3
    assert found["rota_jobs", "mail", "discarded"] == 1
    assert found["rota_jobs", "mail", "running"] == 0
    assert found["rota_jobs_appended_total", "mail"] == 10
    assert found["rota_jobs_claimed_total", "mail"] == 7
    assert (found["rota_queue_paused", "mail"], found["rota_queue_paused", "tenant-1"]) == (1, 0)
    assert found["rota_queue_oldest_available_seconds", "mail"] == 70.0
    assert found["rota_queue_oldest_available_seconds", "tenant-1"] == 0.0
    assert found[("rota_workers",)] == 2
    assert found["rota_queue_workers", "mail"] == 2
    assert found["rota_queue_workers", "tenant-1"] == 1


def test_many_queues() -> None:
    """Queues beyond a thousand are one: added up where it is a sum, without their own counters."""
    queues = [
        QueueRecord(f"q{n:05}", paused=False, counts={State.AVAILABLE: 1}, appended=5)
        for n in range(MOST_QUEUES + 10)
    ]
    found = samples(seen(queues=queues, lanes=(lane(queue="q01009", oldest=9.0),)))
    assert found["rota_jobs", "other", "available"] == 10
    assert found["rota_jobs", "q00999", "available"] == 1
    assert found["rota_queue_oldest_available_seconds", "other"] == 9.0
    counters = {key[1] for key in found if key[0] == "rota_jobs_appended_total"}
    assert counters == {queue.name for queue in queues[:MOST_QUEUES]}


@pytest.mark.parametrize("workers", [1, 0])
def test_cron(workers: int) -> None:
    """How late an entry is; one that makes no jobs is not, unless no worker is there at all."""

    def record(name: str, due: timedelta, **more: bool) -> CronRecord:
        flags = {"paused": False, "declared": True, "undeclared": False} | more
        return CronRecord(CronEntry(name, "* * * * *", "t"), due=NOW + due, last=None, **flags)

    late = timedelta(seconds=-90)
    found = samples(
        seen(
            workers=[session()] * workers,
            cron=[
                record("late", late),
                record("early", -late),
                record("paused", late, paused=True),
                record("gone", late, undeclared=True),
            ],
        )
    )
    lateness = {key[1]: found[key] for key in found if key[0] == "rota_cron_lateness_seconds"}
    assert lateness == {"late": 90.0, "early": 0.0} | ({} if workers else {"gone": 90.0})


def test_the_database() -> None:
    """The oldest transaction, sizes, what could not be freed, and the findings by severity."""
    mib = 1024**2
    parts = [
        table("log_0", size=200 * mib, total=200 * mib),
        table("log_1", size=70 * mib, total=70 * mib),
        table("log_2", size=70 * mib, total=70 * mib),
        table("lease_0", size=mib, total=mib),
    ]
    holders = (HolderFacts("session", seconds=5.0), HolderFacts("slot", seconds=None))
    found = samples(seen(postgres(tables=tuple(parts)), horizon=HorizonFacts(holders=holders)))
    assert found[("rota_horizon_age_seconds",)] == 5.0
    assert found[("rota_log_bytes",)] == 340 * mib
    assert found[("rota_tables_bytes",)] == 341 * mib
    assert found[("rota_segments_stuck",)] == 2
    assert found["rota_findings", "warning"] >= 1
    assert found[("rota_look_seconds",)] == 0.25


def test_a_file() -> None:
    """Of SQLite the size of the file is known, and there is no job log."""
    found = samples(seen(sqlite(size=53248)))
    assert found[("rota_tables_bytes",)] == 53248
    assert ("rota_log_bytes",) not in found
