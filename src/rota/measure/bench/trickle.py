"""What does a single job cost, where jobs come one by one and workers are idle most of the time?"""

from collections import defaultdict
from collections.abc import Sequence

from rota.measure.bench.crew import workers_of
from rota.measure.bench.figures import distribution, percentiles, ratio
from rota.measure.bench.observer import observing
from rota.measure.bench.scratch import Scratch
from rota.measure.bench.steady import Course, Ran, Steady
from rota.measure.reports.report import Bars, Figures, Lines, Result, Series, Value
from rota.terminal.progress import Progress


def trickle(
    scratch: Scratch, *, rate: float, seconds: float, workers: Sequence[int], progress: Progress
) -> Result:
    """Enqueue jobs one by one at a rate, for each number of workers on a database of its own."""
    figures: dict[str, Figures] = {}
    series: dict[str, Series] = {}
    kinds: dict[str, dict[str, float]] = {}
    first: Figures | None = None
    stopped_by = None
    for count in workers:
        label = workers_of(count)
        course = Course(seconds, rate, batch=1, workers=count)
        with scratch.fresh() as url, observing(url, scratch) as observer:
            ran = Steady(url, course, observer, progress).run()
        found, parts = _figures(ran)
        first = first or found
        found["server_to_first_run"] = _ratio(found, first, "server_ms_per_job")
        found["p50_to_first_run"] = _ratio(found, first, "p50_ms")
        figures[label] = found
        for name, value in parts.items():
            kinds.setdefault(name, {})[label] = value
        if delays := [delay for sample in ran.samples for delay in sample.delays]:
            x, y = distribution(delays)
            series[label] = Series("% of jobs", tuple(x[:-1]), tuple(y[:-1]), "ms")
        if stopped_by := ran.stopped_by:
            break
    charts: list[Lines | Bars] = [
        Lines("How soon jobs start: the further left and the steeper, the better",
              "milliseconds from the call of enqueue to the start of the handler",
              "% of jobs that have started", tuple(series), spread=True),
    ]  # fmt: skip
    if kinds:
        charts.append(
            Bars(
                "What a job costs the server", "milliseconds of processor time", kinds, stacked=True
            )
        )
    return Result(
        figures={"runs": figures}, series=series, charts=tuple(charts), notes=NOTES,
        stopped_by=stopped_by,
    )  # fmt: skip


NOTES = (
    (
        "Processor time is what the operating system counts: of the workers' own processes, and of the "
        "server's, where they run on this machine and psutil is installed (rota[bench]). Of the server's "
        "processes those of connections are named by what Rota uses them for; the others are background. "
        "The first two seconds are left out. Transactions are those of the whole database, and sessions "
        "report them about a second late."
    ),
)


def _figures(ran: Ran) -> tuple[dict[str, Value], dict[str, float]]:
    """The figures of a run, and the server's milliseconds for a job by kind of connection."""
    samples = ran.samples
    settled = sum(sample.settled for sample in samples)
    due, sent = (
        sum(sample.due for sample in samples), sum(sample.enqueued for sample in samples)
    )  # fmt: skip
    server: dict[str, float] = defaultdict(float)
    for sample in samples:
        for name, value in (sample.server or {}).items():
            server[name] += value
    known = bool(server) and settled > 0
    parts: dict[str, float] = {}
    if known:
        parts = {name: round(1000 * value / settled, 3) for name, value in server.items() if value}
    transactions = [sample.transactions for sample in samples if sample.transactions is not None]
    span = sum(sample.span for sample in samples)
    return {
        "jobs": settled,
        "enqueued_to_offered": ratio(sent, due),
        "jobs_left_over": ran.left,
        "server_ms_per_job": round(sum(parts.values()), 3) if known else None,
        **{f"server_ms_per_job_{name.replace(' ', '_')}": parts[name] for name in sorted(parts)},
        "server_percent_of_a_core": round(100 * sum(server.values()) / span, 2) if known else None,
        "workers_ms_per_job": (
            round(1000 * sum(sample.cpu for sample in samples) / settled, 3) if settled else None
        ),
        "transactions_per_job": (
            round(sum(transactions) / settled, 2) if settled and transactions else None
        ),
        **percentiles(delay for sample in samples for delay in sample.delays),
    }, parts


def _ratio(found: Figures, first: Figures, name: str) -> float | None:
    value, base = found[name], first[name]
    if isinstance(value, float) and isinstance(base, float):
        return ratio(value, base)
    return None
