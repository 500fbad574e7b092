"""The command `rota` itself: its help, its exit codes, how little it imports."""

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from rota import __version__
from rota.cli.main import COMMANDS, cli
from tests.cli.calling import finished, rota


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands below a group."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield (*path, name), command


def test_help_names_the_commands_and_the_exit_codes() -> None:
    """`rota --help` lists all commands and exit codes."""
    result = rota("--help")
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in result.output
    for code in (0, 1, 2, 3, 4, 130):
        assert f"\n    {code} " in result.output


def test_the_summaries_are_those_of_the_commands() -> None:
    """The table, which spares the imports, names commands that exist."""
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert command.name == name


@pytest.mark.parametrize("path", [path for path, _ in commands(cli)], ids=" ".join)
def test_every_command_has_json_and_an_example(path: tuple[str, ...]) -> None:
    """No command is without `--json`, `--url` and an example of its own."""
    result = rota(*path, "--help")
    assert result.exit_code == 0
    assert "--json" in result.output
    # Strategies and experiments are the program's own, in no database; an app of several databases
    # says which they are.
    assert ("--url" in result.output) is (path not in {("lab", "list"), ("shards", "move")})
    assert "Example" in result.output
    assert f"rota {' '.join(path)}" in result.output.split("Example")[1]


def test_help_imports_nothing_heavy() -> None:
    """`rota --help` is quick: neither a driver nor rich nor any command is imported."""
    code = (
        "import sys; from rota.cli.main import cli\n"
        "try: cli(['--help'])\n"
        "except SystemExit: pass\n"
        "print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.splitlines()[-1].split())
    assert "rota.cli.main" in loaded
    unwanted = {"rich", "psycopg", "sqlite3", "rota.worker", "rota.cli.jobs", "rota.cli.demo"}
    assert not loaded & unwanted


def test_version() -> None:
    """`--version` prints the version."""
    assert __version__ in rota("--version").output


def test_as_a_module() -> None:
    """`python -m rota` is the same command, named `rota` in its help."""
    run = finished("--help")
    assert run.returncode == 0
    assert run.stdout.startswith("Usage: rota ")


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("jobs", "nonsense"),
        ("jobs", "show"),
        ("jobs", "show", "abc"),
        ("jobs", "show", "0"),
        ("jobs", "show", str(2**63)),
        ("jobs", "list", "--state", "lost"),
        ("jobs", "list", "--limit", "0"),
        ("jobs", "retry"),
        ("jobs", "retry", "1", "--all-discarded"),
        ("jobs", "retry", "1", "--queue", "mail"),
        ("queues", "pause"),
        ("worker",),
        ("worker", "shop", "--concurrency", "0"),
        ("demo", "/nowhere/at/all"),
        ("demo", "--workers", "0"),
        ("demo", "--workers", "1", "--kill"),
    ],
    ids=" ".join,
)
def test_wrong_usage(words: tuple[str, ...]) -> None:
    """A wrong command line gives exit status 2 and says why."""
    result = rota(*words)
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert "Traceback" not in result.output
