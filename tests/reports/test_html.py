"""The page: complete, and it loads nothing."""

import builtins
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rota.measure.reports.charts import draw
from rota.measure.reports.html import page as written
from rota.measure.reports.report import Bars, Lines, Result, Series, report
from rota.measure.reports.surroundings import rota_surroundings
from tests.cli.calling import refused, rota

LINES = Lines("Flat is good <here>", "seconds", "jobs per second", ("done", "offered"))
BARS = Bars("One next to the other", "ms", {"with": {"p50": 1.0}, "without": {"p50": 1234.0}})
RESULT = Result(
    figures={"runs": {"a": {"rate": 1000}, "b": {"rate": 2000}}},
    series={
        "done": Series("jobs/s", (1.0, 2.0, 3.0), (10.0, None, 12.0)),
        "offered": Series("jobs/s", (1.0, 2.0, 3.0), (11.0, 11.0, 11.0)),
    },
    charts=(LINES, BARS),
    notes=("A note & more.",),
    stopped_by="SIGTERM",
)
LOADING = {"src", "href", "xlink:href", "data", "action", "poster", "srcset"}


class Page(HTMLParser):
    """What a page would load, and the ids in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in LOADING and not (value or "").startswith("#"):
                self.loads.append(f"{tag} {name}={value}")
            if name == "id":
                self.ids.append(str(value))


@pytest.fixture(scope="module")
def page() -> str:
    """A page with both kinds of charts."""
    return written(
        report("hold", "Does it <hold>?", {"jobs": 1}, RESULT, rota_surroundings("sqlite")),
        RESULT.charts,
    )


def test_needs_nothing_else(page: str) -> None:
    """No scripts, no links to load, no styles or fonts from elsewhere."""
    found = Page(page)
    assert found.loads == []
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(found.tags)
    assert "@import" not in page
    assert [url for url in re.findall(r"url\(([^)]*)\)", page) if not url.startswith("#")] == []
    # Namespaces are names, not addresses to be loaded.
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_says_everything(page: str) -> None:
    """Question, figures, charts with titles and units, notes, and where it was measured."""
    for word in (
        "rota bench hold", "Does it &lt;hold&gt;?", "Interrupted", "Flat is good &lt;here&gt;",
        "jobs per second", "One next to the other", "</i>offered<", "</i>without<", "A note &amp; more.", "processor", "python",
        "commit", "journal_mode",
    ):  # fmt: skip
        assert word in page, word


def test_charts_do_not_share_names(page: str) -> None:
    """An id stands once in a page, and each reference finds its id."""
    ids = Page(page).ids
    assert len(ids) == len(set(ids))
    referred = set(re.findall(r"(?:url\(|href=\")#([^\")]+)", page))
    assert referred <= set(ids)


def test_charts_fit_light_and_dark_pages(page: str) -> None:
    """Text, lines and background take the page's colours."""
    assert "prefers-color-scheme: dark" in page
    for chart in (LINES, BARS):
        svg = draw(chart, RESULT.series, 0)
        assert ("var(--ink)" in svg) is (chart is BARS)
        assert "var(--quiet)" in svg
        assert "var(--grid)" in svg
        for fixed in ("#000000", "#010101", "#020202", "#030303", "#ffffff"):
            assert fixed not in svg


def test_long_labels_lie_below_each_other() -> None:
    """Many runs with long names do not write over each other: the chart gets higher instead."""
    few, many = (
        Bars(
            "", "jobs per second", {"rate": {f"{n} workers, process, kept": 1.0 for n in range(m)}}
        )
        for m in (2, 30)
    )
    heights = [
        float(re.findall(r'viewBox="0 0 [\d.]+ ([\d.]+)"', draw(chart, {}, 0))[0])
        for chart in (few, many)
    ]
    assert heights[1] > 2 * heights[0]


def test_an_empty_series_can_be_drawn() -> None:
    """A run that was interrupted at once has a page too."""
    series = {"done": Series("ms", (), ()), "offered": Series("ms", (1.0,), (None,))}
    assert draw(LINES, series, 0).startswith("<svg")


def test_the_commit() -> None:
    """A report of a checkout names its commit."""
    checkout = (Path(__file__).parents[2] / ".git").exists()
    assert (rota_surroundings("sqlite").commit is not None) is checkout


def test_written_by_a_command(tmp_path: Path) -> None:
    """`--html` writes the page, and the tables are printed all the same."""
    file = tmp_path / "counts.html"
    result = rota(
        "bench", "counts", "--sizes=100", "--sizes=200", "--html", file,
        url=f"sqlite:///{tmp_path}/rota.db",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "queues ms" in result.stdout
    text = file.read_text(encoding="utf-8")
    assert text.count("<svg") == 1
    assert Page(text).loads == []


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matplotlib the command says so before it measures."""
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    result = rota(
        "bench", "counts", "--html", tmp_path / "x.html", url=f"sqlite:///{tmp_path}/r.db"
    )
    refused(result, 2, "matplotlib", "rota[bench]")
    assert not (tmp_path / "x.html").exists()
