"""`skip-locked-2pc`: a prepared transaction outlives its worker, until it is ended by hand."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from rota.measure.processes import ProcessEnded
from rota.measure.servers import PostgresServer
from rota_lab.databases import Database
from rota_lab.experiment import experiments
from rota_lab.queue import Queue, Trial
from rota_lab.shift import Failed, Shift
from rota_lab.strategy import Job
from tests.cli.calling import answer, refused, rota
from tests.fixtures.workers import LONG, until
from tests.lab.bystander import Bystander, Hand
from tests.lab.test_properties import die

PREPARED = "select gid from pg_prepared_xacts where database = current_database()"


@contextmanager
def killed(trial: Callable[..., Trial], *, recover: int) -> Iterator[Queue]:
    """Jobs 1 and 2, and a worker that was killed at work at 1."""
    with (
        trial("skip-locked-2pc", Database.POSTGRES, recover=recover).fresh() as queue,
        closing(Bystander(queue)) as bystander,
    ):
        queue.strategy.enqueue([Job("1"), Job("2")])
        before = bystander.sessions()
        with queue.workers(1, die) as workers:
            workers.go()
            with pytest.raises(ProcessEnded):
                until(lambda: not workers.tell())
        until(lambda: bystander.sessions() <= before, "the server to notice")
        yield queue


def test_a_job_of_a_dead_worker_waits_for_a_decision(trial: Callable[..., Trial]) -> None:
    """No session has the row, and still it is locked, until the transaction is ended by hand."""
    with killed(trial, recover=0) as queue:
        first = Hand(queue).start()
        first.join()
        assert first.worked == ["2"]
        assert queue.strategy.left() == 1
        [prepared] = queue.strategy.db.rows(PREPARED)
        queue.strategy.db.command("rollback prepared %s", prepared.gid)
        second = Hand(queue).start()
        second.join()
        assert second.worked == ["1"]
        assert queue.strategy.left() == 0


def test_recovery_gives_it_back(trial: Callable[..., Trial]) -> None:
    """With `recover` a worker that finds nothing else rolls back what the dead have prepared."""
    with killed(trial, recover=1) as queue:
        hand = Hand(queue).start()
        hand.join()
        assert hand.worked == ["2", "1"]
        assert queue.strategy.left() == 0


def test_recovery_leaves_the_living_alone(trial: Callable[..., Trial]) -> None:
    """A worker at work has prepared as well; what it has is its own."""
    with trial("skip-locked-2pc", Database.POSTGRES, recover=1).fresh() as queue:
        queue.strategy.enqueue([Job("1")])
        first = Hand(queue, holds=True).start()
        assert first.at_work.wait(LONG)
        second = Hand(queue).start()
        second.join()
        first.join()
        assert (first.worked, second.worked) == (["1"], [])
        assert queue.strategy.left() == 0


def test_work_that_fails_is_rolled_back(trial: Callable[..., Trial]) -> None:
    """The row is to be had again, and nothing stays prepared."""

    def fail(text: str) -> None:
        assert len(queue.strategy.db.rows(PREPARED)) == 1
        raise Failed(text)

    with trial("skip-locked-2pc", Database.POSTGRES).fresh() as queue:
        queue.strategy.enqueue([Job("1")])
        with pytest.raises(Failed):
            queue.strategy.step(Shift(fail))
        assert queue.strategy.db.rows(PREPARED) == []
        hand = Hand(queue).start()
        hand.join()
        assert hand.worked == ["1"]


def test_a_database_with_something_prepared_is_removed(
    trial: Callable[..., Trial], postgres_url: str
) -> None:
    """What a killed worker has left does not keep the lab's database alive."""
    with killed(trial, recover=0) as queue:
        name = queue.strategy.db.rows("select current_database()")[0][0]
    with closing(psycopg.connect(postgres_url)) as connection:
        found = connection.execute("select from pg_database where datname = %s", [name])
        assert found.rowcount == 0


@pytest.mark.large
def test_a_server_that_prepares_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL's own default: the strategy is left out, or refused if it was asked for."""
    usual = ("skip-locked", "skip-locked-2pc")
    monkeypatch.setattr(type(experiments()["parallel"]), "usual", usual)
    words = ("lab", "run", "parallel", "--quick", "--set=rows=5", "--set=processes=1")
    with PostgresServer.start(settings={"max_prepared_transactions": "0"}) as server:
        run = (*words, f"--database={server.url}", "--out", tmp_path)
        asked = rota(*run, "--strategy=skip-locked-2pc")
        refused(asked, 2, "skip-locked-2pc cannot run", "set max_prepared_transactions")
        report = answer(*run)
    assert any(note.startswith("skip-locked-2pc is left out") for note in report["notes"])
