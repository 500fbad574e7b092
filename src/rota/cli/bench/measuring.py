"""What all benchmarks share: where they measure, progress, and showing the report."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click
from click.core import ParameterSource

from rota.cli.bench import files
from rota.cli.bench.tables import say_tables
from rota.terminal.advice import not_empty
from rota.terminal.bar import bar
from rota.terminal.exits import INTERRUPTED, USAGE, Failure, complain
from rota.terminal.output import say_json
from rota.terminal.stopping import stoppable

if TYPE_CHECKING:
    from rota.measure.bench.scratch import Scratch
    from rota.measure.reports.report import Report, Result, Value
    from rota.terminal.progress import Progress

F = TypeVar("F", bound=Callable[..., Any])

STDOUT = "-"


class Where(TypedDict):
    """The options of all benchmarks."""

    url: str | None
    private: bool
    json: str | None
    html: Path | None


def options(command: F) -> F:
    """The options of all benchmarks."""
    for option in (
        click.option(
            "--html", metavar="FILE", type=click.Path(path_type=Path),
            help="Write a page with charts (needs rota[bench]).",
        ),
        click.option(
            "--json", metavar="[FILE]", is_flag=False, flag_value=STDOUT,
            help="Print JSON, or write it to FILE.",
        ),
        click.option("--private", is_flag=True, help="Start a PostgreSQL of its own."),
        click.option(
            "--url", metavar="URL", envvar="ROTA_DATABASE_URL", callback=not_empty,
            help="The server, or the SQLite file's folder, to make databases on.  "
            "[default: ROTA_DATABASE_URL, else SQLite in a temporary folder]",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def measure(module: str, where: Where, run: "Callable[[Scratch, Progress], Result]") -> None:
    """Run a benchmark and show its report.

    Args:
        module: The benchmark's name; its module's first line is the question it answers.
        where: The options of all benchmarks.
        run: Runs the benchmark.

    Raises:
        Failure: It was stopped, and has nothing to report; or a file cannot be written.
        UsageError: The options contradict each other.
        ConfigError: It cannot be run.
    """
    import importlib

    from rota.measure.bench.scratch import scratch
    from rota.measure.reports.report import report
    from rota.measure.reports.surroundings import rota_surroundings

    _check(where)
    question = (importlib.import_module(f"rota.measure.bench.{module}").__doc__ or "").splitlines()[
        0
    ]
    with stoppable(), scratch(where["url"], private=where["private"]) as databases:
        _say_left_behind(databases)
        with bar() as progress:
            result = run(databases, progress)
        where_measured = rota_surroundings(databases.server or "sqlite")
        made = report(module, question, _parameters(), result, where_measured)
    _show(made, result, where)
    if result.stopped_by:
        complain(f"stopped by {result.stopped_by}; the report has what was measured by then")
        click.get_current_context().exit(INTERRUPTED)


def _parameters() -> "Mapping[str, Value]":
    """The options as they are typed, without dashes."""
    from rota.store.url import shown

    context = click.get_current_context()
    found: dict[str, Value] = {}
    for parameter in context.command.params:
        name, value = parameter.opts[0].lstrip("-"), context.params[str(parameter.name)]
        if name == "url":
            # With --private the variable's URL is not the database that was measured.
            value = None if value is None or context.params["private"] else shown(value)
        elif isinstance(value, tuple):
            value = ", ".join(str(item).lower() for item in value)
        if name not in {"json", "html"}:
            found[name.replace("-", "_")] = value
    return found


def _check(where: Where) -> None:
    """Fail now, and not after an hour, for what cannot be done."""
    given = click.get_current_context().get_parameter_source("url")
    if where["private"] and given is ParameterSource.COMMANDLINE:
        raise click.UsageError(
            "--private starts a PostgreSQL of its own, and --url names another database: leave "
            "out --url to measure on the private server, or --private to measure on the other"
        )
    if where["html"] is not None:
        from rota.measure.reports import charts

        charts.check()
    written = {option: path for option, path in _files(where).items() if path is not None}
    for option, path in written.items():
        files.check(option, path)
    if len({path.absolute() for path in written.values()}) < len(written):
        raise Failure("--json and --html name the same file; choose two files", USAGE)


def _say_left_behind(databases: "Scratch") -> None:
    """Name the databases that killed benchmarks have left behind; the user may drop them."""
    from rota.measure.bench.scratch import left_behind

    names = [] if databases.server is None else left_behind(databases.server)
    if names:
        drops = " ".join(f'DROP DATABASE "{name}";' for name in names)
        count = f"{len(names)} databases" if len(names) > 1 else "a database"
        click.echo(
            f"Killed benchmarks have left {count} behind, without connections. To remove: {drops}",
            err=True,
        )  # fmt: skip


def _files(where: Where) -> dict[str, Path | None]:
    """The files to be written, by their options."""
    file = where["json"]
    return {
        "--json": None if file is None or file == STDOUT else Path(file),
        "--html": where["html"],
    }


def _show(made: "Report", result: "Result", where: Where) -> None:
    import msgspec

    # Files first: the reader of standard output may stop reading.
    json, html = _files(where).values()
    if json is not None:
        files.write(json, msgspec.json.format(msgspec.json.encode(made), indent=2))
    if html is not None:
        from rota.measure.reports.html import page

        files.write(html, page(made, result.charts).encode())
    if where["json"] == STDOUT:
        say_json(made)
    else:
        from rota.measure.reports.grids import grids, surroundings

        say_tables(
            f"rota bench {made.name}: {made.question}",
            [*grids(made.figures), *surroundings(made)],
            made.notes,
        )
