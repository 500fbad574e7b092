"""Experiments in their quick form show what is known of designs, good and bad."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rota_lab.experiment import Experiment, experiments
from rota_lab.strategy import strategies
from tests.lab.test_run import lab


def runs(*args: Any, **options: Any) -> Any:
    """The rows of a report."""
    return lab(*args, **options)["figures"]["runs"]


@pytest.mark.large
def test_exactly_once(postgres_url: str, server_url: Callable[[str], str], tmp_path: Path) -> None:
    """A design without a lock repeats jobs in races; Rota does not, and loses none."""
    found = runs(
        tmp_path, "exactly-once",
        databases=[postgres_url, server_url("sqlite")],
        strategies=("select-delete", "skip-locked", "rota"),
    )  # fmt: skip
    assert len(found) == 12
    for name, run in found.items():
        assert run["never_done"] == run["left_in_the_queue"] == 0, name
        if "select-delete" not in name:
            # Each accident has happened, once, and the job came back.
            assert run["failed_on_purpose"] == (5 if "failures" in name else 0), name
            assert run["killed_on_purpose"] == (1 if "crashes" in name else 0), name
            if "crashes" not in name or "skip-locked" in name:
                assert run["done_again"] == 0, name
    assert found["select-delete, races"]["done_again"] > 0
    assert found["select-delete, races"]["repeated_jobs"] > 0


@pytest.mark.large
def test_ordering(postgres_url: str, server_url: Callable[[str], str], tmp_path: Path) -> None:
    """One worker of Rota's keeps the order; a design that repeats jobs has more entries than jobs."""
    found = runs(
        tmp_path, "ordering", "--set", "workers=1", databases=[postgres_url, server_url("sqlite")],
        strategies=("skip-locked", "rota"),
    )  # fmt: skip
    for run in found.values():
        assert run["entries"] == 60
        assert run["largest_diff"] == 0
        assert run["in_place_percent"] == 100
    # How far from the order two workers come is chance, that jobs are repeated is not.
    found = runs(
        tmp_path, "ordering", databases=[postgres_url], strategies=("select-delete", "skip-locked")
    )
    bad, good = found["select-delete"], found["skip-locked, PostgreSQL"]
    assert bad["entries"] > 60
    assert bad["jobs_taken_again"] > 0
    assert good["jobs_taken_again"] == 0
    assert bad["jobs_never_taken"] == good["jobs_never_taken"] == 0


@pytest.mark.large
def test_throughput(postgres_url: str, tmp_path: Path) -> None:
    """Each job counts once, however often it is worked."""
    report = lab(
        tmp_path, "throughput", databases=[postgres_url], strategies=("select-delete", "rota")
    )
    found = report["figures"]["runs"]
    assert found["select-delete"]["worked_again"] > 0
    assert found["rota, PostgreSQL"]["worked_again"] == 0
    for run in found.values():
        assert run["never_worked"] == 0
        assert run["jobs_per_second"] > 0
    series = report["series"]["rota, PostgreSQL"]
    assert series["x_unit"] == "%"
    assert len(series["x"]) == 10


@pytest.mark.large
def test_counting(postgres_url: str, tmp_path: Path) -> None:
    """Ten times the rows: COUNT(*) takes much longer, Rota's counters do not."""
    report = lab(tmp_path, "counting", databases=[postgres_url], strategies=("skip-locked", "rota"))
    ways = report["figures"]["time of a count"]
    growth = {name: way["last_to_first"] for name, way in ways.items()}
    counted = growth["skip-locked, PostgreSQL: SELECT COUNT(*)"]
    assert counted > max(2, growth["rota, PostgreSQL: counters"])
    assert set(ways) == {
        "skip-locked, PostgreSQL: SELECT COUNT(*)", "rota, PostgreSQL: counters",
        "rota, PostgreSQL: counters, by the command",
    }  # fmt: skip


@pytest.mark.parametrize("asked", experiments().values(), ids=lambda asked: asked.name)
def test_what_an_experiment_names_is_there(asked: Experiment[Any]) -> None:
    """A strategy or a setting that is spelt wrong would be left out without a word."""
    known = strategies()
    assert {*asked.variants, *asked.usual} <= known.keys()
    assert all(known[name].variant for name in asked.variants)
    own = {"jobs", "rows", "rate", "workers", "processes", "seconds", "every", "patience",
           "failing_every", "killing_every"}  # fmt: skip
    of_strategies = {name for experiment in known.values() for name in experiment.defaults}
    assert {*asked.full, *asked.quick} - own <= of_strategies
