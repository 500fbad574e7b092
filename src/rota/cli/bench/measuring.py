"""What all benchmarks have in common: where they measure, progress, and how the report is shown."""

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, TypeVar

import click

from rota.cli.exits import INTERRUPTED, Failure, complain
from rota.cli.output import say, say_json, table

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

    _check_files(where)
    question = (importlib.import_module(f"rota.bench.{module}").__doc__ or "").splitlines()[0]
    with _sigterm(), scratch(where["url"], private=where["private"]) as place:
        with _bar() as progress:
            result = run(place, progress)
        made = report(module, question, place.server or "sqlite", _parameters(), result)
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


@contextlib.contextmanager
def _bar() -> "Iterator[Progress]":
    """A bar on a terminal, nothing elsewhere."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from rota.reports.progress import Silent

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Silent()
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as shown:
        line = shown.add_task("", total=None)

        class Bar:
            def begin(self, what: str, total: float) -> None:
                shown.reset(line, description=what, total=round(total))

            def at(self, done: float) -> None:
                shown.update(line, completed=int(done))

        yield Bar()


@contextlib.contextmanager
def _sigterm() -> Iterator[None]:
    """Let SIGTERM, and a terminal that goes away, be like Ctrl-C: what was made is removed."""

    def stop(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    # Windows has no SIGHUP.
    ends = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.signal(number, stop) for number in ends}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
