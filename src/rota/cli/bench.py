"""`rota bench`: measure this machine and this database."""

import json
from collections.abc import Callable
from typing import Any

import click

Progress = Callable[[int], None]


@click.group()
def bench() -> None:
    """Measure Rota here: throughput, cost of an enqueue, latency.

    Every benchmark makes a database of its own and removes it at the end.

    \b
    Example:
      rota bench drain --private --jobs 100000
    """


def _common(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option("--private", is_flag=True, help="Start a PostgreSQL of its own."),
        click.option(
            "--url",
            envvar="ROTA_DATABASE_URL",
            help="The server (or the SQLite folder) to make the database in. [default: SQLite]",
        ),
    ):
        command = option(command)
    return command


@bench.command()
@_common
@click.option("--jobs", type=click.IntRange(1), default=100_000, show_default=True)
@click.option("--concurrency", type=click.IntRange(1), default=32, show_default=True)
@click.option("--keep/--no-keep", default=True, show_default=True, help="Keep completed jobs.")
def drain(
    url: str | None, jobs: int, concurrency: int, *, private: bool, as_json: bool, keep: bool
) -> None:
    """Jobs per second of one worker process emptying a queue of no-op async jobs."""
    from rota.bench.drain import drain as measure

    _run(
        "drain", url, jobs, private=private, as_json=as_json,
        measure=lambda fresh, progress: measure(
            fresh, jobs, keep=keep, concurrency=concurrency, progress=progress
        ),
    )  # fmt: skip


@bench.command()
@_common
@click.option("--jobs", type=click.IntRange(1000), default=100_000, show_default=True)
@click.option("--singles", type=click.IntRange(100), default=3000, show_default=True)
def enqueue(url: str | None, jobs: int, singles: int, *, private: bool, as_json: bool) -> None:
    """Enqueue one by one, next to bare INSERTs, and many at once."""
    from rota.bench.enqueue import enqueue as measure

    _run(
        "enqueue", url, jobs + singles, private=private, as_json=as_json,
        measure=lambda fresh, progress: measure(fresh, jobs, singles=singles, progress=progress),
    )  # fmt: skip


@bench.command()
@_common
@click.option("--jobs", type=click.IntRange(10), default=300, show_default=True)
def latency(url: str | None, jobs: int, *, private: bool, as_json: bool) -> None:
    """Milliseconds from the call of enqueue to the start of the handler, worker idle."""
    from rota.bench.latency import latency as measure

    _run(
        "latency", url, jobs, private=private, as_json=as_json,
        measure=lambda fresh, progress: measure(fresh, jobs, progress=progress),
    )  # fmt: skip


def _run(
    name: str,
    url: str | None,
    total: int,
    *,
    private: bool,
    as_json: bool,
    measure: Callable[[str, Progress], dict[str, Any]],
) -> None:
    from rich.console import Console
    from rich.progress import Progress as Bar

    from rota.bench.report import surroundings
    from rota.bench.scratch import scratch

    console = Console(stderr=True)
    with scratch(url, private=private) as fresh, Bar(console=console, transient=True) as bar:
        line = bar.add_task(name, total=total)
        figures = measure(fresh, lambda done: bar.update(line, completed=done))
        report = {"benchmark": name, **figures, **surroundings(fresh)}
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        _show(report)


def _show(report: dict[str, Any], indent: str = "") -> None:
    for key, value in report.items():
        words = key.replace("_", " ")
        match value:
            case dict():
                click.echo(f"{indent}{words}")
                _show(value, indent + "  ")
            case int() if not isinstance(value, bool):
                click.echo(f"{indent}{words}: {value:,}")
            case _:
                click.echo(f"{indent}{words}: {value}")


__all__ = ["bench"]
