"""What all benchmarks have in common: where they measure, progress, and how the report is shown."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from rota.cli.exits import INTERRUPTED, Failure, complain
from rota.cli.output import say, say_json, table
from rota.cli.progress import bar, ending

if TYPE_CHECKING:
    from rota.bench.scratch import Scratch
    from rota.reports.progress import Progress
    from rota.reports.report import Report, Result, Value

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
            "--html", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
            help="Write a page with charts (needs rota[bench]).",
        ),
        click.option(
            "--json", metavar="[FILE]", is_flag=False, flag_value=STDOUT,
            help="Print JSON, or write it to FILE.",
        ),
        click.option("--private", is_flag=True, help="Start a PostgreSQL of its own."),
        click.option(
            "--url", metavar="URL", envvar="ROTA_DATABASE_URL",
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
        run: Does it.

    Raises:
        Failure: It was interrupted, and has nothing to report; or a file cannot be written.
        ConfigError: It cannot be run.
    """
    import importlib

    from rota.bench.scratch import scratch
    from rota.reports.report import report
    from rota.reports.surroundings import rota_surroundings

    _check_files(where)
    question = (importlib.import_module(f"rota.bench.{module}").__doc__ or "").splitlines()[0]
    with ending(), scratch(where["url"], private=where["private"]) as place:
        with bar() as progress:
            result = run(place, progress)
        where_measured = rota_surroundings(place.server or "sqlite")
        made = report(module, question, _parameters(), result, where_measured)
    _show(made, result, where)
    if result.partial:
        complain("stopped by Ctrl-C; the report is of what was measured by then")
        click.get_current_context().exit(INTERRUPTED)


def _parameters() -> "Mapping[str, Value]":
    """The options as one types them, without dashes."""
    from rota.store.opening import shown

    context = click.get_current_context()
    found: dict[str, Value] = {}
    for parameter in context.command.params:
        name, value = parameter.opts[0].lstrip("-"), context.params[str(parameter.name)]
        if name == "url":
            value = None if value is None else shown(value)
        elif isinstance(value, tuple):
            value = ", ".join(str(one).lower() for one in value)
        if name not in {"json", "html"}:
            found[name.replace("-", "_")] = value
    return found


def _check_files(where: Where) -> None:
    """Say now, and not after an hour, that the report cannot be written."""
    if where["html"] is not None:
        from rota.reports import charts

        charts.check()
    file = where["json"]
    for path in (where["html"], None if file in {None, STDOUT} else Path(str(file))):
        if path is not None and not path.absolute().parent.is_dir():
            raise Failure(
                f"there is no folder {path.parent} to write {path.name} to; make it first"
            )


def _show(made: "Report", result: "Result", where: Where) -> None:
    import msgspec

    # Files first: whoever reads the rest may stop reading.
    file = where["json"]
    if file not in {None, STDOUT}:
        _write(Path(str(file)), msgspec.json.format(msgspec.json.encode(made), indent=2))
    if where["html"] is not None:
        from rota.reports.html import page

        _write(where["html"], page(made, result.charts).encode())
    if file == STDOUT:
        say_json(made)
    else:
        _tables(made)


def _write(path: Path, text: bytes) -> None:
    try:
        path.write_bytes(text)
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror}; choose another file") from error


def _tables(made: "Report") -> None:
    from rota.reports.grids import grids, surroundings

    say(f"rota bench {made.name}: {made.question}", bold=True)
    for grid in [*grids(made.figures), *surroundings(made)]:
        say()
        if grid.title:
            say(grid.title, bold=True)
        table(grid.headings, grid.rows, nothing="nothing")
    for note in made.notes:
        say()
        say(note, dim=True)
