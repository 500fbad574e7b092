"""The docs section: a table and charts between two marks of a page, and the pictures beside it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.peers import measurements as asked
from benchmarks.peers.field import FIELD
from benchmarks.peers.report import Document, Medians, charts, failures
from benchmarks.peers.samples import medians
from rota.errors import ConfigError
from rota.measure.reports.charts import picture

PAGE = Path("how", "benchmarks.md")
PICTURES = "pictures"
BEGIN = "<!-- The field: `make peers` writes what follows. -->"
END = "<!-- The field ends. -->"

COLUMNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "enqueue/s: one / bulk": ((asked.ONE, "per_second"), (asked.MANY, "per_second")),
    "drain/s: 1 / 2 workers": ((asked.DRAIN, "per_second"), (asked.DRAIN_2, "per_second")),
    "drain/s, snapshot held": ((asked.HELD, "per_second"),),
    "idle worker, ms: p50 / p95": ((asked.LATENCY, "p50_ms"), (asked.LATENCY, "p95_ms")),
    **{
        f"{heading}: 1 / 4 / 16 workers": tuple(
            (name, figure) for name in asked.TRICKLES.values()
        )
        for heading, figure in (
            ("server ms/job", "server_ms_per_job"), ("workers ms/job", "workers_ms_per_job"),
            ("p50 ms at 100/s", "p50_ms"), ("p95 ms at 100/s", "p95_ms"),
        )
    },
}  # fmt: skip


def check(docs: Path) -> None:
    """Fail now, and not after half an hour, where the section cannot be written.

    Raises:
        ConfigError: The page is missing, or has no marks for the section.
    """
    _parts(docs)


def write(docs: Path, document: Document) -> None:
    """Write the section anew, and its pictures.

    Raises:
        ConfigError: The page is missing, or has no marks for the section.
    """
    before, after = _parts(docs)
    found = medians(document.samples)
    folder = docs / PICTURES
    folder.mkdir(exist_ok=True)
    for old in folder.glob("field-*.png"):
        old.unlink()
    images = []
    for name, bars in charts(found).items():
        file = folder / f"field-{name}.png"
        file.write_bytes(picture(bars, {}))
        images.append(f"![{bars.title}](../{PICTURES}/{file.name})")
    text = "\n\n".join(
        [*_words(document), "\n".join(_table(found)), *images, "\n".join(_settings(document))]
    )
    (docs / PAGE).write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def _parts(docs: Path) -> tuple[str, str]:
    page = docs / PAGE
    if not page.is_file():
        raise ConfigError(f"there is no {page}: name the folder of the docs, such as docs")
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ConfigError(
            f"{page} has no lines {BEGIN!r} and {END!r}: write them where the field belongs"
        )
    return before, after


def _words(document: Document) -> Iterator[str]:
    report = document.report
    machine = ", ".join(
        f"{value} {unit}".strip()
        for value, unit in (
            (report.machine["processor"], ""), (report.machine["cores"], "cores"),
            (report.machine["memory_gb"], "GB"),
        )
    )  # fmt: skip
    servers = ", ".join(
        f"{title} {report.versions[key]}"
        for key, title in (("postgresql", "PostgreSQL"), ("redis", "Redis"), ("sqlite", "SQLite"),
                           ("python", "Python"), ("node", "Node.js"))
        if key in report.versions
    )  # fmt: skip
    rounds = report.parameters["rounds"]
    partial = " The run was broken off." if report.partial else ""
    yield (
        f"Measured on {report.when[:10]} on {machine}, commit {report.commit}; {servers}."
        f" Medians of {rounds} round{'s' * (rounds != 1)}.{partial}"
    )
    wrong = failures(document.samples, document.left_out)
    yield "\n".join(f"- {line}" for line in wrong) or "No run has lost or repeated a job."


def _settings(document: Document) -> Iterator[str]:
    yield "| | version | settings |"
    yield "|---|---|---|"
    for name, peer in FIELD.items():
        if name in document.versions:
            yield f"| {peer.title} | {document.versions[name]} | {peer.settings} |"


def _table(found: Medians) -> Sequence[str]:
    peers = [name for name in FIELD if any(peer == name for _, peer in found)]
    lines = [
        f"| | {' | '.join(COLUMNS)} |",
        f"|---|{'---|' * len(COLUMNS)}",
    ]
    for name in peers:
        cells = (
            " / ".join(
                _cell(found.get((measurement, name), {}), figure) for measurement, figure in parts
            )
            for parts in COLUMNS.values()
        )
        lines.append(f"| {FIELD[name].title} | {' | '.join(cells)} |")
    return lines


def _cell(figures: Mapping[str, float], figure: str) -> str:
    """A figure; a star where workers did not keep up, or a backlog was not drained in time."""
    if figure not in figures:
        return "-"
    value = figures[figure]
    well = figures.get("finished", 1.0) == 1 and figures.get("kept_up", 1.0) == 1
    text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits
    return text if well else f"{text}*"
