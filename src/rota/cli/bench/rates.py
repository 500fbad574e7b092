"""Benchmarks of jobs per second."""

from itertools import product
from typing import Unpack

import click

from rota.cli.bench.finite import Finite
from rota.cli.bench.measuring import Where, measure, options
from rota.measure.bench.instruments import INSTRUMENTS, NOTHING


@click.command()
@click.option("--jobs", type=click.IntRange(10), default=100_000, show_default=True,
              help="How many jobs.")  # fmt: skip
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    multiple=True,
    default=(1,),
    help="Processes.  [default: 1]",
)
@click.option(
    "--executor", type=click.Choice(["loop", "thread", "process"]), multiple=True,
    default=("loop",), help="Where the handlers run.  [default: loop]",
)  # fmt: skip
@click.option(
    "--args", "sizes", type=click.IntRange(0, 1_000_000), multiple=True, default=(0,),
    metavar="BYTES", help="Size of each job's args; 0 is a number.  [default: 0]",
)  # fmt: skip
@click.option(
    "--keep/--no-keep",
    multiple=True,
    default=(True,),
    help="Keep completed jobs or not.  [default: keep]",
)
@click.option(
    "--held/--not-held", multiple=True, default=(False,),
    help="Whether another session holds a snapshot and an xid.  [default: not held]",
)  # fmt: skip
@click.option(
    "--all", "everything", is_flag=True,
    help="1, 2 and 4 workers; all executors; kept and not; args of 10 B, 1 kB and 100 kB.",
)  # fmt: skip
@click.option(
    "--with", "instruments", type=click.Choice(INSTRUMENTS), multiple=True, default=(NOTHING,),
    help="What the workers are instrumented by.  [default: nothing]",
)  # fmt: skip
@click.option("--concurrency", type=click.IntRange(1), default=32, show_default=True,
              help="How many jobs a worker runs at once.")  # fmt: skip
@options
def drain(
    *,
    jobs: int,
    workers: tuple[int, ...],
    executor: tuple[str, ...],
    sizes: tuple[int, ...],
    keep: tuple[bool, ...],
    held: tuple[bool, ...],
    everything: bool,
    instruments: tuple[str, ...],
    concurrency: int,
    **where: Unpack[Where],
) -> None:
    """Jobs per second of workers emptying a queue of jobs that do nothing.

    Options may be repeated: every combination is run on a database of its own, and compared with
    the first.

    \b
    Examples:
      rota bench drain --private --keep --no-keep
      rota bench drain --private --held --jobs 200000
      rota bench drain --workers 1 --workers 4
      rota bench drain --private --with nothing --with prometheus --with otel
    """
    from rota.measure.bench.drain import Course
    from rota.measure.bench.drain import drain as run

    if everything:
        workers, executor, sizes = (1, 2, 4), ("loop", "thread", "process"), (10, 1000, 100_000)
        keep = (True, False)
    courses = [
        Course(jobs, count, kind, size, kept, hold, concurrency, instrument)
        for hold, size, kind, kept, count, instrument in product(
            held, sizes, executor, keep, workers, instruments
        )
    ]
    measure("drain", where, lambda scratch, progress: run(scratch, courses, progress))


@click.command()
@click.option("--jobs", type=click.IntRange(1000), default=100_000, show_default=True,
              help="For one enqueue_many.")  # fmt: skip
@click.option("--singles", type=click.IntRange(100), default=3000, show_default=True,
              help="Enqueued one by one, and as many bare INSERTs.")  # fmt: skip
@click.option("--producers", type=click.IntRange(1, 64), multiple=True, default=(1, 2, 4),
              help="Processes that enqueue one by one.  [default: 1, 2 and 4]")  # fmt: skip
@click.option("--seconds", type=Finite(0.2), default=3.0, show_default=True,
              help="For each number of producers.")  # fmt: skip
@options
def enqueue(
    *,
    jobs: int,
    singles: int,
    producers: tuple[int, ...],
    seconds: float,
    **where: Unpack[Where],
) -> None:
    """Enqueue one by one, next to bare INSERTs; many at once; several producers.

    \b
    Example:
      rota bench enqueue --private
    """
    from rota.measure.bench.enqueue import enqueue as run

    measure(
        "enqueue", where,
        lambda scratch, progress: run(
            scratch, jobs=jobs, singles=singles, producers=producers, seconds=seconds,
            progress=progress,
        ),
    )  # fmt: skip


@click.command()
@click.option("--workers", type=click.IntRange(1, 64), multiple=True, default=(1, 2, 4, 8),
              help="Processes.  [default: 1, 2, 4 and 8]")  # fmt: skip
@click.option("--lanes", type=click.IntRange(1, 100_000), multiple=True, default=(1, 32, 1000),
              help="Pairs of queue and priority.  [default: 1, 32 and 1000]")  # fmt: skip
@click.option("--jobs", type=click.IntRange(10), default=20_000, show_default=True,
              help="For each combination.")  # fmt: skip
@click.option("--seconds", type=Finite(0), default=5.0, show_default=True,
              help="To watch the idle workers of each combination; 0: not at all.")  # fmt: skip
@click.option("--rest", type=Finite(0), default=11.0, show_default=True,
              help="Seconds before that, for sessions to report what they did; below 10 the "
              "transactions are not measured.")  # fmt: skip
@options
def scale(
    *,
    workers: tuple[int, ...],
    lanes: tuple[int, ...],
    jobs: int,
    seconds: float,
    rest: float,
    **where: Unpack[Where],
) -> None:
    """More workers, more queues and priorities: jobs per second while busy, cost while idle.

    Every number of --workers is run with every number of --lanes. Each run takes --rest and
    --seconds, and a few seconds more; by default all of it takes about five minutes.

    \b
    Example:
      rota bench scale --private --workers 1 --workers 4 --lanes 1 --lanes 32
    """
    from rota.measure.bench.scale import scale as run

    measure(
        "scale", where,
        lambda scratch, progress: run(
            scratch, workers=workers, lanes=lanes, jobs=jobs, idle_seconds=seconds, rest=rest,
            progress=progress,
        ),
    )  # fmt: skip


@click.command()
@click.option("--sizes", type=click.IntRange(1, 100_000_000), multiple=True,
              default=(10_000, 100_000, 1_000_000), metavar="JOBS",
              help="Numbers of jobs.  [default: 10000, 100000 and 1000000]")  # fmt: skip
@click.option("--finished", is_flag=True, help="Count kept completed jobs, not available ones.")
@options
def counts(*, sizes: tuple[int, ...], finished: bool, **where: Unpack[Where]) -> None:
    """Count the jobs of each queue, next to a COUNT(*).

    \b
    Example:
      rota bench counts --private --sizes 10000 --sizes 1000000
    """
    from rota.measure.bench.counts import counts as run

    measure(
        "counts", where,
        lambda scratch, progress: run(scratch, sizes=sizes, finished=finished, progress=progress),
    )  # fmt: skip


@click.command()
@click.option("--jobs", type=click.IntRange(1000), default=100_000, show_default=True,
              help="For one call.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True,
              help="Turns of all ways.")  # fmt: skip
@options
def bulk(*, jobs: int, rounds: int, **where: Unpack[Where]) -> None:
    """Enqueue many at once, next to a bare COPY; also unique jobs, of which half meet one of their key.

    \b
    Example:
      rota bench bulk --private
    """
    from rota.measure.bench.bulk import bulk as run

    measure(
        "bulk", where,
        lambda scratch, progress: run(scratch, jobs=jobs, rounds=rounds, progress=progress),
    )  # fmt: skip


@click.command()
@click.option("--jobs", type=click.IntRange(10), default=100_000, show_default=True,
              help="How many jobs.")  # fmt: skip
@click.option("--keys", type=click.IntRange(1), default=1000, show_default=True,
              help="Number of different keys.")  # fmt: skip
@click.option("--running", type=click.IntRange(1), default=4, show_default=True,
              help="Jobs of each key that run at once.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Processes.")  # fmt: skip
@click.option(
    "--held/--not-held", multiple=True, default=(False,),
    help="Whether another session holds a snapshot and an xid.  [default: not held]",
)  # fmt: skip
@options
def limits(
    *,
    jobs: int,
    keys: int,
    running: int,
    workers: int,
    held: tuple[bool, ...],
    **where: Unpack[Where],
) -> None:
    """Jobs per second with a limit for each of many keys, next to the same jobs without limits.

    \b
    Examples:
      rota bench limits --private
      rota bench limits --private --not-held --held --keys 100 --running 1
    """
    from rota.measure.bench.limits import limits as run

    measure(
        "limits", where,
        lambda scratch, progress: run(
            scratch, jobs=jobs, keys=keys, running=running, workers=workers, held=held,
            progress=progress,
        ),
    )  # fmt: skip


@click.command()
@click.option("--engine", "engines", type=click.Choice(["dask", "ray"]), multiple=True,
              default=("dask", "ray"), help="Which ones.  [default: both]")  # fmt: skip
@click.option("--jobs", type=click.IntRange(100), default=20_000, show_default=True,
              help="How many jobs.")  # fmt: skip
@click.option("--takes", type=Finite(0), multiple=True, default=(0, 1, 10),
              help="Milliseconds that a handler takes.  [default: 0, 1 and 10]")  # fmt: skip
@click.option("--turns", type=click.IntRange(1), default=3, show_default=True,
              help="Of the bare engine and of Rota.")  # fmt: skip
@options
def spread(
    *,
    engines: tuple[str, ...],
    jobs: int,
    takes: tuple[float, ...],
    turns: int,
    **where: Unpack[Where],
) -> None:
    """Handlers per second on a local cluster of two processes, next to its engine's bare tasks.

    The bare tasks run alone and in bundles.

    Needs rota[dask] and rota[ray].

    \b
    Examples:
      rota bench spread --private
      rota bench spread --private --engine dask --takes 5
    """
    from rota.measure.bench.spread import spread as run

    measure(
        "spread", where,
        lambda scratch, progress: run(
            scratch, engines, jobs=jobs, takes=takes, turns=turns, progress=progress
        ),
    )  # fmt: skip


@click.command()
@click.option("--jobs", type=click.IntRange(10), default=100_000, show_default=True,
              help="How many jobs.")  # fmt: skip
@click.option("--keys", type=click.IntRange(1), default=100, show_default=True,
              help="Number of different keys.")  # fmt: skip
@click.option("--batch", "batches", type=click.IntRange(1, 10_000), multiple=True,
              default=(100, 1000, 5000), help="Messages in a batch.  [default: 100, 1000 and 5000]")  # fmt: skip
@options
def relay(*, jobs: int, keys: int, batches: tuple[int, ...], **where: Unpack[Where]) -> None:
    """Messages per second from a relay into a Redis server of the benchmark's own.

    \b
    Example:
      rota bench relay --private
    """
    from rota.measure.bench.relay import relay as run

    measure(
        "relay", where,
        lambda scratch, progress: run(
            scratch, jobs=jobs, keys=keys, batches=batches, progress=progress
        ),
    )  # fmt: skip


@click.command()
@click.option("--jobs", type=click.IntRange(min=1000), default=200_000, show_default=True,
              help="Jobs in sum.")  # fmt: skip
@click.option("--databases", "counts", type=click.IntRange(1, 64), multiple=True,
              default=(1, 4), help="How many databases.  [default: 1 and 4]")  # fmt: skip
@click.option("--turns", type=click.IntRange(min=1), default=4, show_default=True,
              help="How often each is measured.")  # fmt: skip
@options
def shards(*, jobs: int, counts: tuple[int, ...], turns: int, **where: Unpack[Where]) -> None:
    """Jobs per second from several databases by one worker, beside those from one.

    \b
    Example:
      rota bench shards --private
    """
    from rota.measure.bench.shards import shards as run

    measure(
        "shards", where,
        lambda scratch, progress: run(
            scratch, jobs=jobs, counts=counts, turns=turns, progress=progress
        ),
    )  # fmt: skip


@click.command()
@click.option("--sizes", type=click.IntRange(2, 1_000_000), multiple=True,
              default=(1000, 10_000, 100_000), metavar="JOBS",
              help="Jobs of a map.  [default: 1000, 10000 and 100000]")  # fmt: skip
@click.option("--links", type=click.IntRange(2, 100_000), default=1000, show_default=True,
              help="Jobs of a chain.")  # fmt: skip
@click.option("--turns", type=click.IntRange(1), default=3, show_default=True,
              help="How often each is measured.")  # fmt: skip
@click.option(
    "--held/--not-held", multiple=True, default=(False,),
    help="Whether another session holds a snapshot and an xid.  [default: not held]",
)  # fmt: skip
@options
def flow(
    *,
    sizes: tuple[int, ...],
    links: int,
    turns: int,
    held: tuple[bool, ...],
    **where: Unpack[Where],
) -> None:
    """Maps of many jobs and a job that awaits them, beside the same jobs without flow; and a chain.

    \b
    Examples:
      rota bench flow --private
      rota bench flow --private --held --not-held
    """
    from rota.measure.bench.flow import flow as run

    measure(
        "flow", where,
        lambda scratch, progress: run(
            scratch, sizes=sizes, links=links, turns=turns, held=held, progress=progress
        ),
    )  # fmt: skip
