"""The protocol table: it outlives a worker that is killed and a design that rolls back."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from rota.measure.processes import ProcessEnded
from rota_lab.databases import Database
from rota_lab.protocol import Noting, make_protocol, read_protocol
from rota_lab.queue import Trial
from rota_lab.strategy import Job
from tests.fixtures.workers import until


@pytest.mark.parametrize(
    ("name", "database"),
    [("skip-locked", Database.POSTGRES), ("skip-locked", Database.MARIADB), ("rota", Database.SQLITE)],
)  # fmt: skip
def test_entries(name: str, database: Database, trial: Callable[..., Trial]) -> None:
    """One for each time that a job was begun, also by a worker that was killed at it."""
    with trial(name, database, session_timeout=1).fresh() as queue:
        make_protocol(queue.location)
        queue.strategy.enqueue([Job("1"), Job("2")])
        before = time.time()
        with queue.workers(1, Noting(queue.location, die)) as workers:
            workers.go()
            with pytest.raises(ProcessEnded):
                until(lambda: not workers.tell())
        [killed] = read_protocol(queue.location)
        with queue.workers(1, Noting(queue.location), drain=True) as workers:
            workers.go()
            list(workers.until_ended())
        entries = read_protocol(queue.location)
    assert killed.job == "1"
    assert entries[0] == killed
    assert sorted(entry.job for entry in entries) == ["1", "1", "2"]
    assert [entry.id for entry in entries] == sorted(entry.id for entry in entries)
    assert before - 1 < killed.at < time.time() + 1
    assert len({entry.worker for entry in entries}) == 2
    assert os.getpid() not in {entry.worker for entry in entries}


def test_in_this_process(trial: Callable[..., Trial]) -> None:
    """It can be used without a process, and closed."""
    with trial("rota", Database.SQLITE).fresh() as queue:
        make_protocol(queue.location)
        with closing(Noting(queue.location)) as noting:
            noting("7")
        assert [(entry.job, entry.worker) for entry in read_protocol(queue.location)] == [
            ("7", os.getpid())
        ]


def die(_text: str) -> None:
    """What a worker does that is killed."""
    os.kill(os.getpid(), signal.SIGKILL)
