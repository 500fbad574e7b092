"""What cannot be run is refused before anything is measured, with what to do."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from rota.cli.bench.command import bench
from tests.cli.calling import refused, rota

FLOATS = [
    (name, parameter.opts[0])
    for name, command in bench.commands.items()
    for parameter in command.params
    if "float" in parameter.type.name
]


def test_floats_are_found() -> None:
    """The list of the next test is not empty by mistake."""
    assert {("hold", "--warm-up"), ("latency", "--rate"), ("retries", "--share")} < set(FLOATS)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize(("command", "option"), FLOATS)
def test_no_number(command: str, option: str, number: str, tmp_path: Path) -> None:
    """Infinite seconds, or no number at all, are refused."""
    result = rota("bench", command, f"{option}={number}", url=f"sqlite:///{tmp_path}/rota.db")
    assert result.exit_code == 2, result.output
    assert f"Invalid value for '{option}'" in result.stderr
    assert "Traceback" not in result.output


def test_what_cannot_be_run(tmp_path: Path) -> None:
    """A wrong option is refused, and no database is made."""
    here = f"sqlite:///{tmp_path}/rota.db"
    refused(rota("bench", "hold", "--producer", url=here), 2, "PostgreSQL", "--private")
    refused(rota("bench", "drain", url=f"sqlite:///{tmp_path}/no/rota.db"), 2, "no folder")
    refused(rota("bench", "drain", url="oracle://x"), 2, "postgresql://")
    refused(rota("bench", "idle", url="postgresql:///x?host=/nowhere"), 3, "cannot be reached")
    assert rota("bench", "hold", "--producer", "--no-holder", url=here).exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_two_places(tmp_path: Path) -> None:
    """`--private` and `--url` exclude each other; the message explains both."""
    result = rota("bench", "drain", "--private", url=f"sqlite:///{tmp_path}/rota.db")
    assert result.exit_code == 2, result.output
    assert "leave out --url" in result.stderr
    assert "or --private" in result.stderr


def test_the_variable_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`--private` goes before ROTA_DATABASE_URL, and the report does not name the variable's URL."""
    monkeypatch.setenv("ROTA_DATABASE_URL", "postgresql:///x?host=/nowhere")
    file = tmp_path / "x.json"
    result = rota("bench", "counts", "--private", "--sizes=1", "--json", file)
    if result.exit_code == 2 and "no PostgreSQL" in result.stderr:
        pytest.skip("no PostgreSQL to start")
    assert result.exit_code == 0, result.output
    assert '"url": null' in file.read_text(encoding="utf-8")


def missing(folder: Path) -> Path:
    """A file in a missing folder."""
    return folder / "no" / "x"


def folder(folder: Path) -> Path:
    """No file at all."""
    return folder


def refusing(folder: Path) -> Path:
    """A name that no file system takes."""
    return folder / ("x" * 300)


def below_a_file(folder: Path) -> Path:
    """A folder that is a file."""
    (folder / "file").touch()
    return folder / "file" / "x"


def locked(folder: Path) -> Path:
    """A file that may not be written."""
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    file = folder / "locked"
    file.touch(0o400)
    return file


@pytest.mark.parametrize("option", ["--html", "--json"])
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (missing, ["no folder", "create it first"]),
        (folder, ["is a folder"]),
        (refusing, ["cannot be written", "another file"]),
        (below_a_file, ["no folder"]),
        (locked, ["cannot be written", "another file"]),
    ],
)
def test_no_place_for_the_report(
    option: str, make: Callable[[Path], Path], words: list[str], tmp_path: Path
) -> None:
    """Both options say so, alike, before the run: the URL would be refused next."""
    refused(rota("bench", "drain", option, make(tmp_path), url="oracle://x"), 2, option, *words)


def test_one_file_for_two_reports(tmp_path: Path) -> None:
    """The second file would overwrite the first."""
    file = tmp_path / "x"
    result = rota("bench", "drain", "--json", file, "--html", file, url="oracle://x")
    refused(result, 2, "the same file")
    assert not file.exists()


def test_looking_at_a_file_leaves_it(tmp_path: Path) -> None:
    """The file of the last run stays until there is a new report."""
    (old := tmp_path / "old").write_text("kept", encoding="utf-8")
    for file in (old, tmp_path / "new"):
        refused(rota("bench", "drain", "--json", file, url="oracle://x"), 2, "postgresql://")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert old.read_text(encoding="utf-8") == "kept"


def test_help_says_how_long() -> None:
    """A benchmark that takes minutes says so before."""
    for command in ("hold", "soak", "scale"):
        said = click.unstyle(rota("bench", command, "--help").stdout)
        assert re.search(r"[Tt]akes about", " ".join(said.split())), said
