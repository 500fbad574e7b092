"""The report: medians of the samples as figures and charts, and what went wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.peers import measurements as asked
from benchmarks.peers.field import FIELD
from benchmarks.peers.samples import Sample, medians
from rota.measure.reports.report import Bars, Figures, Report, Result, Value

QUESTION = "How fast are Rota and other job queues on this machine, side by side?"

Medians = Mapping[tuple[str, str], Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Everything that a run leaves behind, as it is written to a file.

    Attributes:
        versions: The peers' versions by their names.
        left_out: Why peers were left out, by their names.
    """

    report: Report
    samples: Sequence[Sample]
    versions: Mapping[str, str]
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chart:
    """A question's bars.

    Attributes:
        groups: Of each group the measurement, and the name of its figure.
        compared: Whether only the peers are shown that have a bar in each group.
    """

    title: str
    unit: str
    groups: Mapping[str, tuple[str, str]]
    compared: bool = False

    def bars(self, found: Medians) -> Bars:
        """The bars of all peers that have some, in the field's order."""
        groups = {
            group: {
                peer.title: found[measurement, name][figure]
                for name, peer in FIELD.items()
                if figure in found.get((measurement, name), {})
            }
            for group, (measurement, figure) in self.groups.items()
        }
        if self.compared:
            shared = set.intersection(*map(set, groups.values()))
            groups = {
                group: {title: value for title, value in values.items() if title in shared}
                for group, values in groups.items()
            }
        return Bars(self.title, self.unit, groups)


def _trickles(figure: str) -> dict[str, tuple[str, str]]:
    return {name.partition(" to ")[2]: (name, figure) for name in asked.TRICKLES.values()}


CHARTS: Mapping[str, Chart] = {
    "enqueue-one": Chart(
        "Enqueue one by one, over one connection: longer is better",
        "jobs per second", {"one by one": (asked.ONE, "per_second")},
    ),
    "enqueue-bulk": Chart(
        "Enqueue in bulk, over one connection: longer is better",
        "jobs per second", {"in bulk": (asked.MANY, "per_second")},
    ),
    "drain": Chart(
        "Drain a backlog: longer is better", "jobs per second",
        {"1 worker": (asked.DRAIN, "per_second"), "2 workers": (asked.DRAIN_2, "per_second")},
    ),
    "held": Chart(
        "Drain while another session holds a snapshot: longer is better", "jobs per second",
        {"alone": (asked.DRAIN, "per_second"),
         "beside a held snapshot": (asked.HELD, "per_second")},
        compared=True,
    ),
    "latency": Chart(
        "From enqueue to handler, idle worker: shorter is better", "milliseconds",
        {"p50": (asked.LATENCY, "p50_ms"), "p95": (asked.LATENCY, "p95_ms")},
    ),
    "trickle-server": Chart(
        "What a job costs the server at 100 a second: shorter is better",
        "milliseconds of processor time per job", _trickles("server_ms_per_job"),
    ),
    "trickle-workers": Chart(
        "What it costs the workers, all together: shorter is better",
        "milliseconds of processor time per job", _trickles("workers_ms_per_job"),
    ),
    "trickle-latency": Chart(
        "From enqueue to handler at 100 a second, p50: shorter is better", "milliseconds",
        _trickles("p50_ms"),
    ),
}  # fmt: skip

NOTES = (
    (
        "Medians of the rounds; in each, the peers take turns. Each peer has the settings that its own "
        "documentation gives as best, a database of its own, and handlers that only write down that they ran. "
        "Each run is checked: a job that is lost or runs twice makes its figures void."
    ),
    (
        "A drain's clock runs from the first handler to the moment when the peer's own database shows nothing "
        "left. It is stopped after four times the time that its backlog was meant for; then what was run counts. "
        "The held snapshot is older than the backlog."
    ),
    (
        "Latency is that from the call of enqueue to the start of the handler. Processor time is what the "
        "operating system counts, for the workers with their child processes, and for all the server's processes, "
        "the producer's connection and being idle included. SQLite has no server."
    ),
    (
        "Not all promise the same: Redis here writes nothing to a disk, while PostgreSQL and SQLite wait for it; "
        "PgQ's loop keeps no state of a job."
    ),
)


def result(
    samples: Sequence[Sample], left_out: Mapping[str, str], stopped_by: str | None = None
) -> Result:
    """The report's figures, charts and notes."""
    found = medians(samples)
    drawn = charts(found)
    return Result(
        figures=_figures(found),
        charts=tuple(drawn.values()),
        notes=(*NOTES, *_settings(samples), *failures(samples, left_out)),
        stopped_by=stopped_by,
    )


def charts(found: Medians) -> dict[str, Bars]:
    """The charts that have something to show, by the names of their files."""
    drawn = {name: chart.bars(found) for name, chart in CHARTS.items()}
    return {name: bars for name, bars in drawn.items() if any(bars.groups.values())}


def _figures(found: Medians) -> Figures:
    """By measurement, then by peer."""
    figures: dict[str, dict[str, dict[str, Value]]] = {}
    for measurement in asked.MEASUREMENTS:
        names = [name for name in FIELD if (measurement, name) in found]
        columns = list(dict.fromkeys(key for name in names for key in found[measurement, name]))
        if columns:
            figures[measurement] = {
                FIELD[name].title: {key: _plain(key, found[measurement, name]) for key in columns}
                for name in names
            }
    return figures


def _plain(key: str, values: Mapping[str, float]) -> Value:
    value = values.get(key)
    if value is None:
        return None
    if key in {"finished", "kept_up"}:
        return value == 1
    return round(value, 3) if "_ms" in key else round(value)


def _settings(samples: Sequence[Sample]) -> list[str]:
    names = {sample.peer for sample in samples}
    return [f"{peer.title}: {peer.settings}." for name, peer in FIELD.items() if name in names]


def failures(samples: Sequence[Sample], left_out: Mapping[str, str]) -> list[str]:
    """What went wrong, in a line each."""
    return [
        *(f"{FIELD[name].title} was left out: {why}." for name, why in left_out.items()),
        *(
            f"{FIELD[sample.peer].title}, {sample.measurement}, round {sample.round}: {sample.failure}"
            for sample in samples
            if sample.failure is not None
        ),
    ]
