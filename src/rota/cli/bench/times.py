"""Benchmarks of how soon jobs start, and what idle workers cost."""

from typing import Unpack

import click

from rota.cli.bench.finite import Finite
from rota.cli.bench.measuring import Where, measure, options


@click.command()
@click.option("--jobs", type=click.IntRange(1), default=300, show_default=True,
              help="One at a time, for an idle worker.")  # fmt: skip
@click.option("--seconds", type=Finite(0), default=10.0, show_default=True,
              help="Of the part under load; 0 leaves it out.")  # fmt: skip
@click.option("--rate", type=Finite(1), help="Jobs per second of the load.  "
              "[default: half of what is measured right before]")  # fmt: skip
@click.option("--batch", type=click.IntRange(1), default=10, show_default=True,
              help="Jobs per call under load; 1 is enqueue.")  # fmt: skip
@click.option("--flood", type=click.IntRange(10), default=20_000, show_default=True,
              help="Jobs to find out the rate with.")  # fmt: skip
@options
def latency(
    *,
    jobs: int,
    seconds: float,
    rate: float | None,
    batch: int,
    flood: int,
    **where: Unpack[Where],
) -> None:
    """Milliseconds from the call of enqueue to the start of the handler: idle, and at half load.

    \b
    Example:
      rota bench latency --private --html latency.html
    """
    from rota.measure.bench.latency import Loaded
    from rota.measure.bench.latency import latency as run

    loaded = Loaded(seconds, rate, batch, flood)
    measure("latency", where, lambda scratch, progress: run(scratch, jobs, loaded, progress))


@click.command()
@click.option("--rate", type=Finite(1), default=100.0, show_default=True,
              help="Jobs per second, enqueued one by one.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 200), multiple=True, default=(1, 4, 16),
              help="Processes.  [default: 1, 4 and 16]")  # fmt: skip
@click.option("--seconds", type=Finite(2), default=20.0, show_default=True,
              help="For each number of workers.")  # fmt: skip
@options
def trickle(
    *, rate: float, workers: tuple[int, ...], seconds: float, **where: Unpack[Where]
) -> None:
    """What a single job costs the server and the workers when jobs come one by one.

    \b
    Examples:
      rota bench trickle --private
      rota bench trickle --private --rate 1000 --workers 4
    """
    from rota.measure.bench.trickle import trickle as run

    measure(
        "trickle", where,
        lambda scratch, progress: run(
            scratch, rate=rate, seconds=seconds, workers=workers, progress=progress
        ),
    )  # fmt: skip


@click.command()
@click.option("--jobs", type=click.IntRange(10), default=100_000, show_default=True,
              help="How many jobs.")  # fmt: skip
@click.option("--seconds", type=Finite(0.1), default=60.0, show_default=True,
              help="In which the jobs become due.")  # fmt: skip
@click.option("--burst", type=click.IntRange(0), default=20_000, show_default=True,
              help="Jobs that are all due at once; 0 leaves that out.")  # fmt: skip
@options
def delayed(*, jobs: int, seconds: float, burst: int, **where: Unpack[Where]) -> None:
    """How late delayed jobs start, and how many per second can be staged.

    \b
    Example:
      rota bench delayed --private --jobs 10000 --seconds 10
    """
    from rota.measure.bench.delayed import delayed as run

    measure(
        "delayed", where,
        lambda scratch, progress: run(
            scratch, jobs=jobs, seconds=seconds, burst=burst, progress=progress
        ),
    )  # fmt: skip


@click.command()
@click.option("--jobs", type=click.IntRange(10), default=20_000, show_default=True,
              help="How many jobs.")  # fmt: skip
@click.option("--share", type=Finite(0, 1), default=0.1, show_default=True,
              help="Of the jobs that fail.")  # fmt: skip
@click.option("--failures", type=click.IntRange(1, 50), default=1, show_default=True,
              help="Of each of them before it succeeds.")  # fmt: skip
@options
def retries(*, jobs: int, share: float, failures: int, **where: Unpack[Where]) -> None:
    """Failing jobs: what they cost, and how late they come back.

    \b
    Example:
      rota bench retries --private --share 0.5 --failures 2
    """
    from rota.measure.bench.retries import retries as run

    measure(
        "retries", where,
        lambda scratch, progress: run(
            scratch, jobs=jobs, share=share, failures=failures, progress=progress
        ),
    )  # fmt: skip


@click.command()
@click.option("--seconds", type=Finite(0.5), default=20.0, show_default=True,
              help="To watch idle workers.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Processes.")  # fmt: skip
@click.option("--lanes", type=click.IntRange(1, 100_000), default=1, show_default=True,
              help="Pairs of queue and priority.")  # fmt: skip
@click.option("--rest", type=Finite(0), default=11.0, show_default=True,
              help="Seconds before that, for sessions to report what they did; below 10 the "
              "transactions are not measured.")  # fmt: skip
@options
def idle(*, seconds: float, rest: float, workers: int, lanes: int, **where: Unpack[Where]) -> None:
    """Processor time, transactions and memory of workers that have nothing to do.

    \b
    Example:
      rota bench idle --private --workers 4
    """
    from rota.measure.bench.idle import idle as run

    measure(
        "idle", where,
        lambda scratch, progress: run(
            scratch, seconds=seconds, rest=rest, workers=workers, lanes=lanes, progress=progress
        ),
    )  # fmt: skip


@click.command()
@click.option("--sizes", type=click.IntRange(1000, 100_000_000), multiple=True, default=(10_000, 1_000_000),
              metavar="JOBS", help="Numbers of jobs.  [default: 10000 and 1000000]")  # fmt: skip
@click.option("--requests", type=click.IntRange(1), default=10, show_default=True,
              help="Of each page.")  # fmt: skip
@click.option("--rate", type=Finite(0), default=2000.0, show_default=True,
              help="Jobs per second that are enqueued and worked meanwhile.")  # fmt: skip
@click.option("--seconds", type=Finite(0), default=20.0, show_default=True,
              help="To watch overviews that are open; 0: not at all.")  # fmt: skip
@options
def dashboard(
    *, sizes: tuple[int, ...], requests: int, rate: float, seconds: float, **where: Unpack[Where]
) -> None:
    """How long each page of the dashboard takes in the server, and what an open one costs.

    \b
    Examples:
      rota bench dashboard --private
      rota bench dashboard --private --sizes 10000 --sizes 1000000 --sizes 10000000
    """
    from rota.measure.bench.dashboard import dashboard as run

    measure(
        "dashboard", where,
        lambda scratch, progress: run(
            scratch, sizes=sizes, requests=requests, rate=rate, seconds=seconds, progress=progress
        ),
    )  # fmt: skip


@click.command()
@click.option("--steps", "count", type=click.IntRange(10), default=2000, show_default=True,
              help="Steps, and as many bare INSERTs.")  # fmt: skip
@click.option("--asleep", type=click.IntRange(0, 1_000_000), multiple=True, default=(0, 10_000),
              metavar="JOBS", help="Jobs that wait for a signal.  [default: 0 and 10000]")  # fmt: skip
@click.option("--seconds", type=Finite(0.1), default=20.0, show_default=True,
              help="To watch an idle worker beside them.")  # fmt: skip
@click.option("--rest", type=Finite(0), default=11.0, show_default=True,
              help="Seconds before that, for sessions to report what they did; below 10 the "
              "transactions are not measured.")  # fmt: skip
@options
def steps(
    *, count: int, asleep: tuple[int, ...], seconds: float, rest: float, **where: Unpack[Where]
) -> None:
    """A step next to a bare INSERT with its commit; an idle worker beside jobs that sleep.

    \b
    Example:
      rota bench steps --private
    """
    from rota.measure.bench.steps import steps as run

    measure(
        "steps", where,
        lambda scratch, progress: run(
            scratch, count=count, asleep=asleep, seconds=seconds, rest=rest, progress=progress
        ),
    )  # fmt: skip
