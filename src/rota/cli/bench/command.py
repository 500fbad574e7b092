"""The group `rota bench`."""

import click

from rota.cli.bench.long import hold, soak
from rota.cli.bench.rates import (
    bulk,
    counts,
    drain,
    enqueue,
    flow,
    limits,
    relay,
    scale,
    shards,
    spread,
)
from rota.cli.bench.times import dashboard, delayed, idle, latency, retries, steps, trickle


@click.group()
def bench() -> None:
    """Measure Rota here: throughput, latency, and what a long transaction does.

    Every benchmark makes databases of its own and removes them at the end. Machines are noisy:
    compare figures of one run.

    \b
    Examples:
      rota bench drain --private --jobs 100000
      rota bench hold --private --seconds 120 --html hold.html
    """


for command in (
    drain,
    enqueue,
    bulk,
    latency,
    trickle,
    hold,
    delayed,
    retries,
    soak,
    scale,
    idle,
    counts,
    limits,
    flow,
    relay,
    shards,
    spread,
    steps,
    dashboard,
):
    bench.add_command(command)
