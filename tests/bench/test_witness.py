"""The witnesses: how fast the machine is, and how many blocks are touched."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from rota.errors import RotaError
from rota.measure.bench.crew import Told
from rota.measure.bench.drain import _drained, steps_of_workers
from rota.measure.bench.observer import Observer, Tables
from rota.measure.bench.scratch import Scratch
from rota.measure.bench.steady import Course, Sample, Steady, blocks_per_job, increase
from rota.measure.bench.witness import Look, Witness, increases, medians, piece
from rota.measure.servers import PostgresServer
from rota.store.migrate import migrate
from rota.store.opening import open_store
from rota.terminal.progress import Silent
from tests.fixtures.workers import until


def told(worker: int, began: float, *settlements: tuple[float, int]) -> Told:
    """A worker's report."""
    return Told(worker, began, 0.0, 1, 1, list(settlements), [], [])


def test_a_piece_of_work_takes_time() -> None:
    """More than none, and little."""
    assert 0 < piece() < 0.1


def test_medians_of_parts() -> None:
    """Each look belongs to one part; one without any is not known."""
    looks = [(0.5, 1.0), (1.0, 5.0), (1.5, 7.0), (1.9, 6.0), (9.0, 100.0)]
    assert medians(looks, 0.0, [1.0, 2.0, 3.0]) == [1.0, 6.0, None]


def test_increases_are_spread_evenly_between_looks() -> None:
    """A part that ends between two looks has its share of what came between them."""
    looks = [(-1.0, 0.0), (1.0, 100.0), (3.0, 500.0), (4.0, 500.0)]
    assert increases(looks, 0.0, [2.0, 3.5]) == [250.0, 200.0]


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param([], id="none"),
        pytest.param([(0.5, 1.0), (1.5, 2.0), (2.5, 3.0)], id="late"),
        pytest.param([(0.0, 1.0), (1.5, 2.0)], id="ended early"),
        pytest.param([(0.0, 1.0), (0.5, 2.0), (2.5, 3.0)], id="not in each part"),
        pytest.param([(0.0, 9.0), (1.5, 2.0), (2.5, 3.0)], id="reset"),
    ],
)
def test_unknown_increases(looks: list[Look]) -> None:
    """Without looks there is no figure."""
    assert increases(looks, 0.0, [1.0, 2.0]) is None


def test_each_worker_has_its_own_steps() -> None:
    """The order of the reports does not matter."""
    found = steps_of_workers([
        told(1, 0.0, (1.0, 10)), told(2, 0.5, (1.0, 20)), told(2, 0.5), told(1, 0.0, (2.0, 30)),
    ])  # fmt: skip
    assert found == [(0.0, [(1.0, 10), (2.0, 30)]), (0.5, [(1.0, 20)])]


@pytest.fixture
def silent() -> Iterator[Witness]:
    """A witness without a look."""
    with closing(Observer("sqlite:///x", Scratch(server=None, folder=None))) as observer:
        yield Witness(observer)


def test_tenths_beside_the_machine(silent: Witness) -> None:
    """Workers that settle together are no fast tenth; a slow machine shows next to them."""
    silent.pieces += [(tenth + 0.5, 0.002 if tenth < 5 else 0.001) for tenth in range(10)]
    run = _drained(
        1000, [told(1, 0.0, (5.0, 250), (10.0, 250)), told(2, 0.0, (5.00001, 250), (10.0, 250))],
        silent,
    )  # fmt: skip
    assert run.figures["slowest_to_fastest_tenth"] == pytest.approx(1.0, abs=1e-3)
    assert run.figures["machine_slowest_to_fastest_tenth"] == 0.5
    assert run.machine == (2.0,) * 5 + (1.0,) * 5
    assert run.figures["blocks_per_job_last_to_first_tenth"] is None
    silent.blocks += [(float(at), at * 100 + (at > 9) * 100.0) for at in range(11)]
    run = _drained(1000, [told(1, 0.0, (10.0, 1000))], silent)
    assert run.blocks == (1.0,) * 9 + (2.0,)
    assert run.figures["blocks_per_job_last_to_first_tenth"] == 2.0


def test_a_tenth_without_a_look(silent: Witness) -> None:
    """If a tenth had no look, the machine's ratio is unknown."""
    silent.pieces.append((0.5, 0.001))
    run = _drained(1000, [told(1, 0.0, (10.0, 1000))], silent)
    assert run.figures["machine_slowest_to_fastest_tenth"] is None


def test_blocks_of_samples() -> None:
    """Blocks per settled job; a missing look makes the figure unknown."""
    nothing = Tables(None, None, None, None, None, 0, None)

    def sample(blocks: int | None) -> Sample:
        return Sample(
            1.0, 1.0, 10.0, 10, 10, 0, [], [], 1, 0.1, None, None, nothing, [0.001], blocks
        )

    assert blocks_per_job([sample(100), sample(200)]) == 15.0
    assert blocks_per_job([sample(100), sample(None)]) is None
    assert blocks_per_job([]) is None
    assert increase(3, 5) == 2
    assert increase(5, 3) is increase(None, 3) is None


class Counting(Observer):
    """Sees a hundred blocks more at each look."""

    seen = 0

    def blocks(self) -> int:
        self.seen += 100
        return self.seen


def test_each_sample_has_its_own(tmp_path: Path) -> None:
    """The pieces of a sample are not in the next."""
    with (
        Scratch(server=None, folder=tmp_path).fresh() as url,
        closing(Counting(url, Scratch(server=None, folder=None))) as observer,
    ):
        course = Course(2.0, 50.0, 5, warm_up=1.0, every=0.5)
        samples = Steady(url, course, observer, Silent()).run().samples
    assert [sample.blocks for sample in samples] == [100] * 4
    # One for each quarter of a second at most, and one for what was left of it.
    assert all(len(sample.pieces) <= 4 for sample in samples)
    assert any(sample.pieces for sample in samples)


@pytest.fixture(scope="module", params=["", "pg_stat_statements"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[PostgresServer, str]]:
    """A server with the extension, or without."""
    library: str = request.param
    try:
        started = PostgresServer.start(settings={"shared_preload_libraries": library})
    except RotaError as error:
        pytest.skip(f"no PostgreSQL with {library or 'nothing'}: {error}")
    with started:
        if library:
            with closing(psycopg.connect(started.url, autocommit=True)) as connection:
                connection.execute("CREATE EXTENSION pg_stat_statements")
        yield started, library or "pg_statio_all_tables"


@pytest.mark.postgres
def test_blocks_are_counted(server: tuple[PostgresServer, str]) -> None:
    """Reading a row touches blocks; what others do in other databases does not."""
    started, source = server
    url = started.create_database(f"measured_{source}")
    store = open_store(url)
    with closing(store.connect()) as connection:
        migrate(store, connection)
    store.close()
    with closing(Observer(url, Scratch(server=started.url, folder=None))) as observer:
        assert observer.blocks_from == source
        assert observer.counts_at_once is (source == "pg_stat_statements")
        before = observer.blocks()
        assert before is not None
        # Its end reports what it did.
        with closing(psycopg.connect(url, autocommit=True)) as connection:
            for _ in range(100):
                connection.execute("SELECT count(*) FROM rota.timer_mark")
        with closing(psycopg.connect(started.url, autocommit=True)) as connection:
            for _ in range(300):
                connection.execute("SELECT count(*) FROM pg_class")
        until(lambda: (observer.blocks() or 0) >= before + 100, "the statistics")
        assert (observer.blocks() or 0) < before + 1000
        witness = Witness(observer)
        witness.look()
        witness.look()
        witness.look_at_blocks()
        assert len(witness.pieces) == 2
        # The second look came too soon after the first.
        assert len(witness.blocks) == (2 if observer.counts_at_once else 0)
