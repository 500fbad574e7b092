"""The README's picture, from the lab's run beside a long transaction.

`python -m tests.docs.long_transaction` draws it anew.
"""

import json
import re
from statistics import fmean
from typing import Any

from rota.measure.reports.charts import draw
from rota.measure.reports.report import Lines, Series
from tests.docs.pages import ROOT

PICTURE = ROOT / "docs" / "pictures" / "long-transaction.svg"
RUN = ROOT / "docs" / "lab" / "mvcc" / "result.json"

SECONDS = 15
"""Each point is the mean of so many seconds: a shared machine is restless."""

DESIGNS = {
    # name of the strategy: name in the picture
    "rota, PostgreSQL": "Rota",
    "que-last-id": "Que, from the last id",
    "que-many": "Que, many at once",
    "skip-locked, PostgreSQL": "SKIP LOCKED",
    "que": "Que (advisory locks)",
    "laravel, PostgreSQL": "Laravel",
    "fetchq": "FetchQ",
}
STYLE = """<style>
  svg { --ink: #1b1f24; --quiet: #59636e; --grid: #d5dae0; font-family: system-ui, sans-serif; }
  @media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --quiet: #9198a1; --grid: #3d444d; } }
</style>"""


def drawn() -> str:
    """The picture, as SVG that fits a light page and a dark one."""
    measured = json.loads(RUN.read_text(encoding="utf-8"))["series"]
    series = {
        name: smooth(measured[f"{design}, beside a long transaction: worked"])
        for design, name in DESIGNS.items()
    }
    title = "Jobs per second beside a transaction that stays open"
    chart = Lines(title, "seconds since it began", "jobs per second", tuple(series))
    return re.sub(
        r"(<svg[^>]*>)", rf"\1{STYLE}<title>{title}</title>", draw(chart, series, 1), count=1
    )


def smooth(raw: dict[str, Any]) -> Series:
    """Means over some seconds, each in their middle."""
    y = [value or 0.0 for value in raw["y"]]
    starts = range(0, len(y) - SECONDS + 1, SECONDS)
    return Series(
        raw["unit"],
        tuple(start + SECONDS / 2 for start in starts),
        tuple(fmean(y[start : start + SECONDS]) for start in starts),
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
