"""Benchmarks of what happens over time."""

from typing import Unpack

import click

from rota.cli.bench.finite import Finite
from rota.cli.bench.measuring import Where, measure, options


@click.command()
@click.option("--seconds", type=Finite(2), default=120.0, show_default=True,
              help="After the warm-up.")  # fmt: skip
@click.option("--warm-up", type=Finite(0), default=2.0, show_default=True,
              help="Seconds of load before that.")  # fmt: skip
@click.option("--rate", type=Finite(1), default=2000.0, show_default=True,
              help="Jobs per second.")  # fmt: skip
@click.option("--batch", type=click.IntRange(1), default=20, show_default=True,
              help="Jobs per call; 1 is enqueue.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Processes.")  # fmt: skip
@click.option("--keep/--no-keep", default=True, show_default=True, help="Keep completed jobs.")
@click.option("--no-holder", is_flag=True, help="The same load without an open transaction.")
@click.option("--producer", is_flag=True, help="The open transaction has enqueued jobs, too; "
              "also times enqueues beside it.")  # fmt: skip
@click.option("--day", is_flag=True, help="No load: write a day's dead rows beside the holder, and compare each "
              "statement of a worker with itself before.")  # fmt: skip
@options
def hold(
    *,
    seconds: float,
    warm_up: float,
    rate: float,
    batch: int,
    workers: int,
    keep: bool,
    no_holder: bool,
    producer: bool,
    day: bool,
    **where: Unpack[Where],
) -> None:
    """Steady load while another session holds REPEATABLE READ with an xid: does anything change?

    Takes about --warm-up and --seconds together. Ctrl-C ends it early and reports what was measured
    so far.

    \b
    Examples:
      rota bench hold --private --seconds 300 --html hold.html
      rota bench hold --private --producer
      rota bench hold --private --day
    """
    from rota.measure.bench.hold import hold as run
    from rota.measure.bench.steady import Course

    if day:
        _a_day(where, loaded=no_holder or producer)
        return

    if producer and no_holder:
        raise click.UsageError("--producer needs the open transaction that --no-holder leaves out")
    course = Course(seconds, rate, batch, workers=workers, keep=keep, warm_up=warm_up)
    measure(
        "hold", where,
        lambda scratch, progress: run(
            scratch, course, holder=not no_holder, producer=producer, progress=progress
        ),
    )  # fmt: skip


def _a_day(where: Where, *, loaded: bool) -> None:
    from rota.measure.bench.day import day

    if loaded:
        raise click.UsageError(
            "--day holds a snapshot and runs no load: leave out --no-holder and --producer"
        )
    measure("day", where, lambda scratch, progress: day(scratch, share=1.0, progress=progress))


@click.command()
@click.option("--seconds", type=Finite(2), default=600.0, show_default=True,
              help="Minutes to hours: 3600 is an hour.")  # fmt: skip
@click.option("--every", type=Finite(0.5), default=1.0, show_default=True,
              help="Seconds between two samples.")  # fmt: skip
@click.option("--rate", type=Finite(1), default=1000.0, show_default=True,
              help="Jobs per second.")  # fmt: skip
@click.option("--batch", type=click.IntRange(1), default=20, show_default=True,
              help="Jobs per call; 1 is enqueue.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Processes.")  # fmt: skip
@click.option("--keep/--no-keep", default=False, show_default=True, help="Keep completed jobs.")
@options
def soak(
    *,
    seconds: float,
    every: float,
    rate: float,
    batch: int,
    workers: int,
    keep: bool,
    **where: Unpack[Where],
) -> None:
    """Steady load for a long time: do memory, tables or backlog grow?

    Takes about --seconds. Ctrl-C ends it early and reports what was measured so far.

    \b
    Example:
      rota bench soak --private --seconds 3600 --every 5 --html soak.html
    """
    from rota.measure.bench.soak import soak as run
    from rota.measure.bench.steady import Course

    course = Course(seconds, rate, batch, workers=workers, keep=keep, every=every)
    measure("soak", where, lambda scratch, progress: run(scratch, course, progress))
