"""How fast is `enqueue_many` beside a bare COPY of the same bytes, and with half the keys taken?"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from statistics import median

from rota.measure.bench import tasks
from rota.measure.bench.bare_bulk import Bare, bare
from rota.measure.bench.processor import BACKGROUND, Processor
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Bars, Result
from rota.model.enqueued import Enqueued
from rota.model.unique import Unique
from rota.terminal.progress import Progress

BARE, NO_KEYS, SKIP, REPLACE = KINDS = ("bare", "no_keys", "skip", "replace")
"""What takes turns in each round."""

WARM = 1000
"""Jobs of the first calls, which open connections and prepare statements."""


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of one call: by the clock, and of processor time here and in the server.

    `taken` are the jobs whose key was taken; `None` where they have no keys.
    """

    clock: float
    client: float
    server: float | None
    taken: int | None


def bulk(scratch: Scratch, *, jobs: int, rounds: int, progress: Progress) -> Result:
    """Write so many jobs at once in each of the ways, in turns.

    Args:
        scratch: Where to make the databases, one for each round.
        jobs: How many jobs a call has.
        rounds: How often all of the ways take their turn.
        progress: Shows how far it is.
    """
    with scratch.fresh() as url:
        plain = bare(url, jobs)
    found: dict[str, list[Took]] = {kind: [] for kind in KINDS}
    progress.begin("rounds", rounds)
    for number in range(rounds):
        # Each kind comes first as often as the others.
        first = number % len(KINDS)
        with scratch.fresh() as url:
            for kind, took in _round(url, jobs, plain, KINDS[first:] + KINDS[:first]).items():
                found[kind].append(took)
        progress.at(number + 1)
    base = {SKIP: NO_KEYS, REPLACE: NO_KEYS}
    figures = {
        kind: _figures(jobs, times, base.get(kind, BARE), found) for kind, times in found.items()
    }
    rates = {kind.replace("_", " "): float(figures[kind]["rate"] or 0) for kind in KINDS}
    chart = Bars("Many jobs at once", "jobs per second", {"": rates})
    return Result(figures={**figures}, charts=(chart,), notes=NOTES)


NOTES = (
    (
        "bare writes the rows that an enqueue_many has stored, which are in memory, in one transaction: on "
        "PostgreSQL a COPY of their bytes, on SQLite an executemany; to a table like that of the jobs, with "
        "its defaults and indexes. no_keys is an enqueue_many. In skip and replace every second key has a "
        "job that waits, enqueued before and not timed; all jobs of the call count. All take turns, in a "
        "new database in each round."
    ),
    (
        "Figures are medians of the rounds. The ratio to bare, or to no_keys, is that of the rates in the "
        "same round; least_ratio is its worst round. Microseconds are processor time per job, of this "
        "process and of the server's, where they run on this machine and psutil is installed (rota[bench])."
    ),
)  # fmt: skip


def _round(url: str, jobs: int, plain: Bare, kinds: tuple[str, ...]) -> dict[str, Took]:
    """All kinds in this order, in a new database."""
    with ExitStack() as stack:
        calls = _calls(url, jobs, plain, stack)
        server = _server(url, stack)
        return {kind: _timed(calls[kind], server) for kind in kinds}


def _calls(url: str, jobs: int, plain: Bare, stack: ExitStack) -> dict[str, Callable[[], object]]:
    """What writes the jobs in each of the ways, with everything before it done."""
    stack.enter_context(closing(tasks.open_app(url)))
    args = [(n,) for n in range(jobs)]
    calls: dict[str, Callable[[], object]] = {BARE: plain.prepared(url, stack)}
    for kind in (NO_KEYS, SKIP, REPLACE):
        task = tasks.noop
        if kind != NO_KEYS:
            task = task.using(unique=Unique(key=f"{kind}:{{n}}", on_conflict=kind))
        # Twice: for created jobs, and for those that meet one.
        for _ in range(2):
            task.enqueue_many([(-n,) for n in range(1, 1 + WARM)])
        if kind != NO_KEYS:
            task.enqueue_many(args[::2])
        calls[kind] = partial(task.enqueue_many, args)
    return calls


def _timed(call: Callable[[], object], server: Callable[[], float | None]) -> Took:
    before = server()
    clock, client = time.perf_counter(), time.process_time()
    stored = call()
    clock, client = time.perf_counter() - clock, time.process_time() - client
    after = server()
    taken = None
    if isinstance(stored, Enqueued) and stored.placings is not None:
        taken = len(stored.skipped) + len(stored.replaced)
    return Took(clock, client, None if before is None or after is None else after - before, taken)


def _server(url: str, stack: ExitStack) -> Callable[[], float | None]:
    """Reads the processor time of the connections' processes, where there are any to be seen."""
    if url.startswith("sqlite"):
        return lambda: None
    import psycopg

    connection = stack.enter_context(closing(psycopg.connect(url, autocommit=True)))
    processor = Processor(connection, frozenset({connection.info.backend_pid}))

    def seconds() -> float | None:
        found = processor.seconds()
        if found is None:
            return None
        return sum(used for name, used in found.items() if name != BACKGROUND)

    return seconds


def _figures(
    jobs: int, times: list[Took], base: str, found: Mapping[str, list[Took]]
) -> dict[str, float | None]:
    ratios = [theirs.clock / mine.clock for mine, theirs in zip(times, found[base], strict=True)]
    server = [took.server for took in times if took.server is not None]
    to_base = {f"ratio_to_{base}": median(ratios), "least_ratio": min(ratios)}
    return {
        "jobs": jobs,
        "taken": times[-1].taken,
        "rate": round(jobs / median(took.clock for took in times)),
        **{name: round(value, 4) for name, value in to_base.items()},
        "client_us_per_job": round(1e6 * median(took.client for took in times) / jobs, 2),
        "server_us_per_job": round(1e6 * median(server) / jobs, 2) if server else None,
    }
