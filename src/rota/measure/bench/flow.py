"""What does it cost that jobs wait for others: fans of many jobs, and long chains?"""

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from rota.measure.bench import tasks
from rota.measure.bench.crew import Crew, Plan
from rota.measure.bench.drain import LOOK
from rota.measure.bench.figures import ratio
from rota.measure.bench.holder import held as holding
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Bars, Figures, Result
from rota.terminal.progress import Progress

WITHOUT = {"bare": "bare", "stored": "bare", "after": "bare", "results": "stored"}
"""With what each kind is compared: the same jobs without a flow."""

FLOWS = ("after", "results")
"""The kinds that have one job more, behind all the others."""

MOST = 10
"""How often a small size is measured in one turn."""

NOTES = (
    (
        "One idle worker. bare: so many jobs by one enqueue_many, in the time from its return to the last settlement's commit. "
        "stored: of jobs whose results are stored. after: the jobs of bare as a map, and one job that waits for them; results: it is given their results, too. "
        "us_per_job: microseconds from the block's end to the last settlement, which is that of the job that waited, by the number of jobs. "
        "us_per_further_job: what each job takes by which this size is larger than the one before: a start and a fan-in take their time whatever the size. "
        "fan_in_ms: the time from the last settlement of the map to that of the job behind it. ratio: rate of the map and the job behind it, "
        "by that of the same jobs without a flow: bare for after, stored for results. All are medians of the turns. links_per_s: of a chain, in which each job waits for the one before."
    ),
)


class Took(NamedTuple):
    """Seconds to settle all jobs but the last, to settle all, and to store them.

    The first two count from the moment when the jobs were there.
    """

    members: float
    all: float
    build: float


def flow(
    scratch: Scratch,
    *,
    sizes: Sequence[int],
    links: int,
    turns: int,
    held: Sequence[bool],
    progress: Progress,
) -> Result:
    """Run fans of each size and a chain beside bare jobs, in turns, a database per way to hold."""
    runs: dict[str, Figures] = {}
    bars: dict[str, dict[str, float]] = {}
    for hold in held:
        name = "held" if hold else "not held"
        with ExitStack() as stack:
            url = stack.enter_context(scratch.fresh())
            if hold:
                stack.enter_context(holding(url))
            bench = _Bench(url, progress)
            try:
                figures, costs = bench.run(sorted({*sizes}), links, turns)
            finally:
                bench.close()
        runs[name] = figures
        bars.update({f"{kind}, {name}": cost for kind, cost in costs.items()})
    chart = Bars("A job of a map, and a bare job", "microseconds", bars)
    return Result(figures={"runs": runs}, charts=(chart,), notes=NOTES)


class _Bench:
    """A worker, and an app beside it that builds flows."""

    def __init__(self, url: str, progress: Progress) -> None:
        self._app = tasks.open_app(url)
        self._progress = progress
        self._crew = Crew(Plan(url))
        self._crew.__enter__()
        self._crew.go()
        self._kinds: dict[str, Callable[[int], object]] = {
            "bare": self._bare,
            "stored": self._stored,
            "after": self._after,
            "results": self._results,
        }

    def close(self) -> None:
        """Stop the worker."""
        self._crew.stop()
        self._crew.__exit__(None, None, None)
        self._app.close()

    def run(
        self, sizes: Sequence[int], links: int, turns: int
    ) -> tuple[Figures, dict[str, dict[str, float]]]:
        """The figures, and microseconds for each job by kind and size."""
        self._take("bare", 1000)
        took: dict[tuple[str, int], list[list[Took]]] = {}
        chains: list[float] = []
        self._progress.begin("fans and chains", turns * (len(sizes) * len(self._kinds) + 1))
        done = 0
        for _ in range(turns):
            for size in sizes:
                for kind in self._kinds:
                    often = min(MOST, max(1, max(sizes) // size))
                    took.setdefault((kind, size), []).append(
                        [self._take(kind, size) for _ in range(often)]
                    )
                    self._progress.at(done := done + 1)
            chains.append(links / self._timed(self._chain, links, links).all)
            self._progress.at(done := done + 1)
        return self._figures(sizes, took, chains)

    def _figures(
        self,
        sizes: Sequence[int],
        took: dict[tuple[str, int], list[list[Took]]],
        chains: Sequence[float],
    ) -> tuple[Figures, dict[str, dict[str, float]]]:
        fans: dict[str, Figures] = {}
        costs: dict[str, dict[str, float]] = {kind: {} for kind in self._kinds}
        for kind in self._kinds:
            before, seconds_before = 0, 0.0
            for size in sizes:
                here = took[kind, size]
                flat = [one for turn in here for one in turn]
                seconds = statistics.median(one.all for one in flat)
                cost = seconds / size
                further = (seconds - seconds_before) / (size - before)
                before, seconds_before = size, seconds
                costs[kind][str(size)] = round(1e6 * cost, 2)
                fans[f"{size:,} jobs, {kind}"] = {
                    "us_per_job": round(1e6 * cost, 2),
                    "us_per_further_job": round(1e6 * further, 2),
                    "us_per_job_first_turn": round(1e6 * _median(here[0]) / size, 2),
                    "us_per_job_last_turn": round(1e6 * _median(here[-1]) / size, 2),
                    "fan_in_ms": None if kind not in FLOWS else round(
                        1e3 * statistics.median(one.all - one.members for one in flat), 2),
                    "build_us_per_job": round(
                        1e6 * statistics.median(one.build for one in flat) / size, 2),
                    "ratio": ratio(costs[WITHOUT[kind]][str(size)], costs[kind][str(size)]),
                }  # fmt: skip
        spread = {
            f"slowest_to_fastest_size_{kind}": ratio(max(cost.values()), min(cost.values()))
            for kind, cost in costs.items()
        }
        chain: Figures = {
            "links_per_s": round(statistics.median(chains), 1),
            "first_turn": round(chains[0], 1),
            "last_turn": round(chains[-1], 1),
        }
        return {"fans": fans, **spread, "chain": chain}, costs

    def _take(self, kind: str, size: int) -> Took:
        return self._timed(self._kinds[kind], size, size + (kind in FLOWS))

    def _timed(self, build: Callable[[int], object], size: int, jobs: int) -> Took:
        """Build something of so many jobs, and wait until the worker has settled them."""
        began = time.time()
        build(size)
        built = time.time()
        settled = 0
        steps: list[tuple[float, int]] = []
        while settled < jobs:
            time.sleep(LOOK)
            news = [step for told in self._crew.tell() for step in told.settlements]
            settled += sum(count for _, count in news)
            steps += news
        ends = sorted(steps)
        last, members, count = ends[-1][0], ends[-1][0], 0
        for at, many in ends:
            count += many
            if count >= jobs - 1:
                members = at
                break
        return Took(members - built, last - built, built - began)

    def _bare(self, size: int) -> None:
        tasks.noop.enqueue_many((n,) for n in range(size))

    def _stored(self, size: int) -> None:
        tasks.store.enqueue_many((n,) for n in range(size))

    def _after(self, size: int) -> None:
        with self._app.flow("bench.after") as f:
            f.add(tasks.noop, 0, after=[f.map(tasks.noop, range(size))])

    def _results(self, size: int) -> None:
        with self._app.flow("bench.results") as f:
            f.add(tasks.gather, f.map(tasks.give, range(size)).results)

    def _chain(self, size: int) -> None:
        with self._app.flow("bench.chain") as f:
            last = f.add(tasks.noop, 0)
            for number in range(1, size):
                last = f.add(tasks.noop, number, after=[last])


def _median(turn: Sequence[Took]) -> float:
    return statistics.median(one.all for one in turn)
