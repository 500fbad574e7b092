"""The report and its section in the docs."""

from pathlib import Path

import pytest

from benchmarks.peers import pages
from benchmarks.peers.measurements import DRAIN
from benchmarks.peers.report import CHARTS, charts, result
from benchmarks.peers.samples import medians
from benchmarks.peers.tests.made import LEFT_OUT, document, samples
from rota.errors import ConfigError
from rota.measure.reports.html import page

PAGE = f"# Benchmarks\n\n## The field\n\nOf others.\n\n{pages.BEGIN}\n\nOld.\n\n{pages.END}\n\n## More\n"


def test_figures_are_medians_by_peer() -> None:
    """What is not known is no number."""
    figures = result(samples(), {}).figures[DRAIN]
    assert figures == {
        "Rota": {"jobs": 100, "per_second": 6000, "finished": True},
        "Graphile Worker": {"jobs": 100, "per_second": 3000, "finished": True},
        "Celery + Redis": {"jobs": 100, "per_second": 2000, "finished": True},
    }


def test_failures_are_told() -> None:
    """Who lost jobs and when, and who was left out and why."""
    notes = result(samples(), LEFT_OUT).notes
    assert "Celery + Redis, drain with 1 worker, round 1: lost 1 of 3 jobs" in notes
    assert "PgQ's loop was left out: the extension pgq is not installed." in notes


def test_charts() -> None:
    """One for each question that was asked; beside a snapshot, only peers that can be compared."""
    found = charts(medians(samples()))
    assert [*CHARTS.keys() - found.keys()] == ["enqueue-bulk"]
    assert found["drain"].groups["1 worker"].keys() == {"Rota", "Graphile Worker", "Celery + Redis"}
    assert found["held"].groups == {
        "alone": {"Rota": 6000.0, "Graphile Worker": 3000.0},
        "beside a held snapshot": {"Rota": 6000.0, "Graphile Worker": 3000.0},
    }
    assert found["latency"].groups["p95"] == {
        "Rota": 4.0, "Graphile Worker": 8.0, "Celery + Redis": 16.0
    }  # fmt: skip
    assert list(found["trickle-server"].groups) == ["1 worker", "4 workers", "16 workers"]


def test_a_peer_that_failed_has_no_bar() -> None:
    """And no empty one that would look like zero."""
    alone = [sample for sample in samples() if sample.peer == "celery" and sample.round == 1]
    assert "drain" not in charts(medians(alone))
    assert DRAIN not in result(alone, {}).figures or result(alone, {}).figures[DRAIN] == {
        "Celery + Redis": {}
    }


def test_the_page_has_all() -> None:
    """Charts, figures and notes."""
    found = result(samples(), LEFT_OUT)
    text = page(document().report, found.charts, program="make peers:")
    assert text.count("<svg") == len(found.charts) == 7
    assert "lost 1 of 3 jobs" in text


def test_the_section_of_the_docs(tmp_path: Path) -> None:
    """It comes between the marks, in place of what was there, with pictures that are there."""
    there = tmp_path / pages.PAGE
    there.parent.mkdir()
    there.write_text(PAGE, encoding="utf-8")
    for _ in range(2):  # the second time in place of itself
        pages.write(tmp_path, document())
    text = there.read_text(encoding="utf-8")
    before, _, rest = text.partition(pages.BEGIN)
    section, _, after = rest.partition(pages.END)
    assert before == PAGE.partition(pages.BEGIN)[0]
    assert after == "\n\n## More\n"
    assert "Old." not in section
    assert "Some, 2 cores, 8.0 GB, commit abc; PostgreSQL 15.1, Python 3.11.2." in section
    assert "Medians of 2 rounds." in section
    assert "| Graphile Worker | 0.18.0 | 24 concurrent jobs" in section
    assert "| Rota | 6,000 / - | 6,000 / - | 6,000* | 2 / 4 |" in section
    assert "- Celery + Redis, drain with 1 worker, round 1: lost 1 of 3 jobs" in section
    pictures = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert len(pictures) == 7
    assert all(f"(../pictures/{name})" in section for name in pictures)


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    """Before anything is measured."""
    with pytest.raises(ConfigError, match="there is no"):
        pages.check(tmp_path)
    there = tmp_path / pages.PAGE
    there.parent.mkdir()
    there.write_text("# Benchmarks\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="has no lines"):
        pages.check(tmp_path)
