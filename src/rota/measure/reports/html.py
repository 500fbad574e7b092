"""A report as one HTML file that needs nothing else: no network, no scripts."""

from collections.abc import Mapping, Sequence
from html import escape

from rota.measure.reports.charts import Key, draw, legend
from rota.measure.reports.grids import Grid, grids, surroundings
from rota.measure.reports.report import Bars, Lines, Report

DATABASES = {
    "postgresql": "PostgreSQL", "mariadb": "MariaDB", "sqlite": "SQLite", "redis": "Redis",
}  # fmt: skip
"""Databases by their names in versions: their names for people."""

STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --card: #f7f8fa; --ink: #1b1f24;
  --quiet: #59636e; --grid: #d5dae0; --warn: #9a5b00; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --card: #1c2025; --ink: #e6e9ed;
  --quiet: #9aa4af; --grid: #363d45; --warn: #e3a53c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 64rem; padding: 2rem 1.25rem 4rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: .95rem; margin: 1.25rem 0 .35rem; color: var(--quiet); font-weight: 600; }
p { margin: .4rem 0; } .quiet, figcaption small { color: var(--quiet); }
.partial { color: var(--warn); font-weight: 600; }
figure { margin: 1rem 0; padding: 1rem; background: var(--card); border-radius: .6rem; }
figcaption { font-weight: 600; margin-bottom: .5rem; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; font-size: .85rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem;
  border-radius: .2rem; vertical-align: -.08rem; }
svg { width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .9rem .28rem 0; border-bottom: 1px solid var(--grid); text-align: right;
  white-space: nowrap; }
th { color: var(--quiet); font-weight: 600; }
th:first-child, td:first-child { text-align: left; }
.plain td, .plain th { text-align: left; }
"""


def page(
    report: Report,
    charts: Sequence[Lines | Bars],
    *,
    program: str = "rota bench",
    sections: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The page.

    Args:
        report: What was measured.
        charts: The charts of the result.
        program: The command that has measured it.
        sections: Paragraphs under headings, to come before the charts.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    drawn = "".join(
        f"<figure><figcaption>{escape(chart.title)}</figcaption>"
        f"{_legend(chart)}{draw(chart, report.series, number)}</figure>\n"
        for number, chart in enumerate(charts)
    )
    before = "".join(
        f"<h2>{escape(heading)}</h2>" + "".join(f"<p>{escape(text)}</p>\n" for text in paragraphs)
        for heading, paragraphs in (sections or {}).items()
    )
    partial = (
        '<p class="partial">Interrupted: this is what was measured by then.</p>'
        if report.partial
        else ""
    )
    notes = "".join(f"<p>{escape(note)}</p>\n" for note in report.notes)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(program)} {escape(report.name)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(program)} {escape(report.name)}</h1>
<p>{escape(report.question)}</p>
<p class="quiet">{escape(_machine(report))}</p>
{partial}
{before}
{f"<h2>Charts</h2>{drawn}" if drawn else ""}
<h2>Figures</h2>
{"".join(map(_table, grids(report.figures)))}
{f"<h2>How to read them</h2>{notes}" if notes else ""}
<h2>Where and how</h2>
{"".join(_table(grid, plain=True) for grid in surroundings(report))}
</body>
</html>
"""


def _machine(report: Report) -> str:
    versions = {"postgresql": report.settings.get("server_version"), **report.versions}
    databases = ", ".join(f"{title} {version}" for key, title in DATABASES.items()
                          if (version := versions.get(key)))  # fmt: skip
    cores = report.machine["cores"]
    return f"{report.when} · {databases} · {cores} cores · commit {report.commit}"


def _legend(chart: Lines | Bars) -> str:
    names = "".join(
        f'<span><i style="{_swatch(key)}"></i>{escape(key.name)}</span>' for key in legend(chart)
    )
    return f'<div class="legend">{names}</div>' if names else ""


def _swatch(key: Key) -> str:
    if key.dashes == "-":
        return f"background: {key.colour}"
    share = 60 if key.dashes == "--" else 30
    return (
        f"background: repeating-linear-gradient(90deg, {key.colour} 0 {share}%,"
        f" transparent {share}% 100%) 0 / 50%"
    )


def _table(grid: Grid, *, plain: bool = False) -> str:
    title = f"<h3>{escape(grid.title)}</h3>" if grid.title else ""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in grid.headings)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n"
        for row in grid.rows
    )
    kind = ' class="plain"' if plain else ""
    return (
        f'{title}<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>\n"
    )
