"""`rota lab`: the queue designs of five articles, side by side with Rota's own store."""

import contextlib
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rota.errors import ConfigError, RotaError
from rota.terminal.bar import bar
from rota.terminal.exits import INTERRUPTED, Failure, complain, exit_code
from rota.terminal.output import json_option, on_terminal, say, say_json, table
from rota.terminal.stopping import stoppable

if TYPE_CHECKING:
    from rota.measure.reports.report import Report
    from rota_lab.experiment import Experiment
    from rota_lab.run import Outcome


@click.group()
def lab() -> None:
    """Run the queue designs of five articles side by side with Rota's own.

    \b
    Examples:
      rota lab list
      rota lab run parallel --quick
      rota lab run mvcc --strategy skip-locked --strategy rota --out mvcc
    """


@lab.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """Explain each strategy and each experiment in two sentences.

    \b
    Example:
      rota lab list
    """
    from rota_lab.experiment import experiments
    from rota_lab.strategy import strategies

    if as_json:
        say_json(
            {
                "strategies": [
                    {
                        "name": strategy.name,
                        "summary": strategy.summary,
                        "articles": strategy.articles,
                        "databases": [*strategy.databases, *(["redis"] if strategy.redis else [])],
                        "variant": strategy.variant,
                        "settings": strategy.defaults,
                    }
                    for strategy in strategies().values()
                ],
                "experiments": [
                    {
                        "name": asked.name,
                        "question": asked.question,
                        "summary": asked.summary,
                        "article": asked.article,
                        "databases": asked.databases,
                        "full": asked.full,
                        "quick": {**asked.full, **asked.quick},
                    }
                    for asked in experiments().values()
                ],
            }
        )
        return
    rows = [
        [strategy.name, _articles(strategy.articles),
         ", ".join([*(kind.title for kind in strategy.databases), *(["Redis"] if strategy.redis else [])]),
         strategy.summary]
        for strategy in strategies().values()
    ]  # fmt: skip
    _explain(["strategy", "article", "databases", "what it does"], rows)
    say()
    rows = [
        [asked.name, _articles((asked.article,)),
         ", ".join(kind.title for kind in asked.databases), f"{asked.question} {asked.summary}"]
        for asked in experiments().values()
    ]  # fmt: skip
    _explain(["experiment", "article", "databases", "what it asks"], rows)


def _explain(headings: list[str], rows: list[list[str]]) -> None:
    """A table in a pipe; on a terminal, where columns are too narrow for sentences, a glossary."""
    if not on_terminal():
        table(headings, rows, nothing="nothing")
        return
    for name, articles, databases, text in rows:
        word = "articles" if "," in articles else "article"
        source = f"{word} {articles}; {databases}" if articles else databases
        say(f"{click.style(name, bold=True)}  ({source})")
        width = shutil.get_terminal_size().columns
        say(click.wrap_text(text, width, initial_indent="  ", subsequent_indent="  "))


@lab.command()
@click.argument("experiment")
@click.option("--strategy", "strategies", metavar="NAME", multiple=True,
              help="Only this strategy; may be repeated.  [default: all that suit]")  # fmt: skip
@click.option(
    "--database", "--url", "databases", metavar="URL", multiple=True,
    help="A server to make databases on, or the SQLite file's folder; or postgres, mariadb, sqlite, "
    "redis for a private server. One of each kind.  [default: private servers, as needed]",
)  # fmt: skip
@click.option("--quick/--full", default=False, help="Seconds for each strategy, or minutes.  "
              "[default: --full]")  # fmt: skip
@click.option("--set", "given", metavar="NAME=NUMBER", multiple=True,
              help="Another setting of the experiment, or of strategies.")  # fmt: skip
@click.option("--out", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
              help="Where the report is written.  [default: lab-EXPERIMENT]")  # fmt: skip
@json_option
def run(
    *,
    experiment: str,
    strategies: tuple[str, ...],
    databases: tuple[str, ...],
    quick: bool,
    given: tuple[str, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """Ask an EXPERIMENT's question of strategies, and write result.json and report.html.

    It makes databases of its own and removes them at the end. Ctrl-C ends it early with a report of
    what was measured by then.

    \b
    Examples:
      rota lab run parallel --quick
      rota lab run mvcc --strategy rota --set seconds=60 --out mvcc
      rota lab run exactly-once --quick --strategy select-delete --strategy rota
      rota lab run parallel --database postgresql:///postgres --database mariadb
    """
    from rota.measure.reports import charts
    from rota_lab import run as running
    from rota_lab.experiment import experiment as find
    from rota_lab.servers import Servers

    asked = find(experiment)
    charts.check("lab")
    form = running.form(asked, strategies, quick=quick, given=dict(map(_setting, given)))
    if warning := asked.beforehand(form.settings):
        click.echo(warning, err=True)
    with _folder(out or Path(f"lab-{experiment}")) as folder:
        with stoppable(), Servers(databases) as servers, bar() as progress:
            outcome = running.run(asked, strategies, servers, form, progress)
        _write(folder, asked, outcome)
    if as_json:
        say_json(outcome.report)
    else:
        _tables(outcome.report)
        say()
        say(f"The report is {folder / 'report.html'}", fg="green")
    if outcome.error is not None:
        complain(
            f"stopped by {outcome.result.stopped_by}; the report has what was measured by then"
        )
        error = outcome.error
        code = exit_code(error) if isinstance(error, RotaError) else INTERRUPTED
        click.get_current_context().exit(code)


def _setting(given: str) -> tuple[str, float]:
    name, _, value = given.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(f"--set {given}: write it as name=number, such as seconds=60")
    return name.strip(), number


@contextlib.contextmanager
def _folder(folder: Path) -> Iterator[Path]:
    """Make the folder now, to fail before the measurement if it cannot be made.

    It is removed again if it stays empty.
    """
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(
            f"{folder} cannot be made: {error.strerror}; choose another folder with --out"
        ) from error
    try:
        yield folder
    finally:
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _write(folder: Path, asked: "Experiment[Any]", outcome: "Outcome") -> None:
    import msgspec

    from rota.measure.reports.charts import picture
    from rota.measure.reports.html import page

    charts = outcome.result.charts
    sections = {
        "What to see": [asked.see],
        f"What article {asked.article} says": [asked.said],
    }
    try:
        (folder / "result.json").write_bytes(
            msgspec.json.format(msgspec.json.encode(outcome.report), indent=2)
        )
        for number, chart in enumerate(charts, 1):
            drawn = picture(chart, outcome.report.series)
            (folder / f"{asked.name}-{number}.png").write_bytes(drawn)
        text = page(outcome.report, charts, program="rota lab", sections=sections)
        (folder / "report.html").write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(
            f"{folder} cannot be written to: {error.strerror}; choose another folder with --out"
        ) from error


def _tables(made: "Report") -> None:
    from rota.measure.reports.grids import grids

    say(f"rota lab {made.name}: {made.question}", bold=True)
    for grid in grids(made.figures):
        say()
        table(grid.headings, grid.rows, nothing="nothing")
    for note in made.notes:
        say()
        say(note, dim=True)


def _articles(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
