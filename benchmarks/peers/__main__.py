"""`make peers`, or `python -m benchmarks.peers`."""

import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from benchmarks.peers import field, measurements, pages, servers, turns
from benchmarks.peers.processes import ROOT, program
from benchmarks.peers.report import QUESTION, Document, result
from benchmarks.peers.samples import Sample
from rota.cli.bench import files
from rota.cli.bench.finite import Finite
from rota.cli.bench.tables import say_tables
from rota.errors import RotaError
from rota.measure.reports import charts
from rota.measure.reports.grids import grids
from rota.measure.reports.html import page
from rota.measure.reports.report import Report, Surroundings, Value, report
from rota.measure.reports.surroundings import postgres_settings, surroundings
from rota.terminal.bar import bar
from rota.terminal.exits import INTERRUPTED, USAGE, Failure, complain, exit_code
from rota.terminal.output import say
from rota.terminal.stopping import stoppable

NAME = "the field"
FOLDER = ROOT / ".cache" / "peers"


@click.command(epilog=f"Peers: {', '.join(field.FIELD)}. "
                      f"Measurements: {', '.join(measurements.MEASUREMENTS)}.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--seconds", type=Finite(0.5), default=5.0, show_default=True,
              help="How long each measurement takes, about.")  # fmt: skip
@click.option("--peers", "names", default="", metavar="NAME,…", help="Only these of the field.")
@click.option("--measurements", "beginnings", default="", metavar="NAME,…",
              help="Only these; the beginning of a name is enough.")  # fmt: skip
@click.option("--json", type=click.Path(path_type=Path), metavar="FILE",
              help="Where all samples go.  [default: .cache/peers/field.json]")  # fmt: skip
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE",
              help="Where the page with charts goes.  [default: .cache/peers/field.html]")  # fmt: skip
@click.option("--docs", type=click.Path(path_type=Path), metavar="FOLDER",
              help=f"Write table and charts into {pages.PAGE} of this folder, too.")  # fmt: skip
@click.option("--from", "earlier", type=click.Path(path_type=Path), metavar="FILE",
              help="Measure nothing: report the samples of an earlier run's JSON.")  # fmt: skip
def main(
    *,
    rounds: int,
    seconds: float,
    names: str,
    beginnings: str,
    json: Path | None,
    html: Path | None,
    docs: Path | None,
    earlier: Path | None,
) -> None:
    """Measure Rota and other job queues side by side on this machine.

    \b
    Examples:
      make peers ARGS="--rounds 1 --peers rota,graphile --measurements enqueue,latency"
      make peers ARGS="--docs docs"
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    json, html = json or FOLDER / "field.json", html or FOLDER / "field.html"
    try:
        charts.check()
        files.check("--json", json)
        files.check("--html", html)
        if docs is not None:
            pages.check(docs)
        if earlier is not None:
            document = read(earlier)
        else:
            document = measure(rounds, seconds, _words(names), _words(beginnings))
            files.write(json, msgspec.json.format(msgspec.json.encode(document), indent=2))
        drawn = result(document.samples, document.left_out).charts
        text = page(document.report, drawn, program="make peers:")
        files.write(html, text.encode())
        if docs is not None:
            pages.write(docs, document)
    except RotaError as error:
        raise Failure(str(error), exit_code(error)) from error
    made = document.report
    say_tables(f"make peers: {made.question}", grids(made.figures), made.notes)
    say()
    say(f"{html}" + ("" if earlier is not None else f", and all samples: {json}"), dim=True)
    if document.report.partial:
        complain("stopped early; the report has what was measured by then")
        click.get_current_context().exit(INTERRUPTED)


def measure(
    rounds: int, seconds: float, names: Sequence[str], beginnings: Sequence[str]
) -> Document:
    """Measure the peers of these names.

    Raises:
        ConfigError: A name is not known, or PostgreSQL is not there.
        Failure: None of them can run on this machine, or it was stopped before all.
        StoreUnavailable: A server did not start.
    """
    peers = field.chosen(names)
    wanted = measurements.chosen(beginnings)
    why = {peer.name: servers.missing(peer) for peer in peers}
    left_out = {name: reason for name, reason in why.items() if reason is not None}
    for name, reason in left_out.items():
        say(f"{field.FIELD[name].title} is left out: {reason}.", fg="yellow")
    here = [peer for peer in peers if peer.name not in left_out]
    if not here:
        raise Failure("none of these peers can run here; see above", USAGE)
    plan = list(turns.turns(rounds, wanted, here))
    with stoppable(), servers.started(here) as running:
        where = _surroundings(here, running)
        with bar() as progress:
            run = turns.take(plan, running, seconds, progress)
    parameters: dict[str, Value] = {
        "rounds": rounds, "seconds": seconds,
        "peers": ", ".join(names) or "all", "measurements": ", ".join(beginnings) or "all",
    }  # fmt: skip
    found = result(run.samples, left_out, run.stopped_by)
    return Document(
        report=report(NAME, QUESTION, parameters, found, where),
        samples=run.samples, versions=run.versions, left_out=left_out,
    )  # fmt: skip


class Saved(msgspec.Struct):
    """A document as it is read: of its report only what does not follow from the samples."""

    report: dict[str, Any]
    samples: list[Sample]
    versions: dict[str, str]
    left_out: dict[str, str]


def read(path: Path) -> Document:
    """An earlier run, with its figures made anew of its samples.

    Raises:
        Failure: The file cannot be read, or is not of such a run.
    """
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=Saved)
        found = result(saved.samples, saved.left_out)
        made = Report(**{
            **saved.report, "figures": found.figures, "series": {}, "notes": found.notes,
        })  # fmt: skip
    except (OSError, msgspec.MsgspecError, TypeError) as error:
        raise Failure(f"{path} is not the JSON of an earlier run: {error}", USAGE) from error
    return Document(
        report=made, samples=saved.samples, versions=saved.versions, left_out=saved.left_out
    )


def _words(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _surroundings(peers: Sequence[field.Peer], running: servers.Servers) -> Surroundings:
    versions = {"sqlite": sqlite3.sqlite_version}
    settings: Mapping[str, str] = {}
    if running.postgres is not None:
        versions["postgresql"] = running.postgres.version
        settings = postgres_settings(running.postgres.url)
    if running.redis is not None:
        versions["redis"] = running.redis.version
    for peer in peers:
        if peer.runtime == "node":
            said = subprocess.run(
                [program(peer)[0], "--version"], capture_output=True, text=True, check=True
            )
            versions["node"] = said.stdout.strip().removeprefix("v")
    return surroundings(versions, settings)


if __name__ == "__main__":
    main(prog_name="make peers")
