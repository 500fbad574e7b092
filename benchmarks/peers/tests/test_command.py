"""The command, and what it needs."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from benchmarks.peers import processes, servers
from benchmarks.peers.__main__ import main
from benchmarks.peers.field import FIELD
from benchmarks.peers.processes import HERE
from benchmarks.peers.tests.made import document


def run(*words: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, words)


def test_an_unknown_peer() -> None:
    """It is refused with the names of those there are."""
    result = run("--peers", "rota,rq")
    assert result.exit_code == 2
    assert "'rq' is no peer: name some of rota, rota-sqlite, procrastinate" in result.output


def test_measuring(tmp_path: Path) -> None:
    """Samples, page and figures come of a run; here of Rota on SQLite."""
    json, html = tmp_path / "field.json", tmp_path / "field.html"
    result = run(
        "--rounds", "1", "--seconds", "0.5", "--peers", "rota-sqlite",
        "--measurements", "enqueue one", "--json", str(json), "--html", str(html),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "enqueue one by one" in result.output
    (sample,) = msgspec.json.decode(json.read_bytes())["samples"]
    assert sample["figures"]["per_second"] > 0
    assert "<svg" in html.read_text(encoding="utf-8")


def test_an_earlier_run(tmp_path: Path) -> None:
    """Its samples are enough for page and docs, and are measured no more."""
    json, html = tmp_path / "field.json", tmp_path / "field.html"
    json.write_bytes(msgspec.json.encode(document()))
    result = run("--from", str(json), "--html", str(html))
    assert result.exit_code == 0, result.output
    assert "lost 1 of 3 jobs" in html.read_text(encoding="utf-8")
    json.write_text("{}", encoding="utf-8")
    result = run("--from", str(json), "--html", str(html))
    assert result.exit_code == 2
    assert "is not the JSON of an earlier run" in result.output


def test_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is left out, with what would install it; a run of it alone is refused."""
    monkeypatch.setattr(processes, "PYTHON", tmp_path / "python")
    monkeypatch.setattr(servers, "MODULES", tmp_path / "node_modules")
    for name in ("huey", "graphile"):
        assert "`make peers` does that" in (servers.missing(FIELD[name]) or "")
    assert servers.missing(FIELD["rota-sqlite"]) is None
    result = run("--peers", "huey")
    assert result.exit_code == 2
    assert "Huey on SQLite is left out" in result.output
    assert "none of these peers can run here" in result.output


def test_servers_that_are_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PgQ and Redis are to be had by `make peers-servers`."""
    (tmp_path / "python").touch()
    monkeypatch.setattr(processes, "PYTHON", tmp_path / "python")
    monkeypatch.setattr(servers, "EXTENSIONS", tmp_path)
    monkeypatch.setattr(servers, "binaries", lambda: tmp_path)
    assert "make peers-servers" in (servers.missing(FIELD["pgq"]) or "")
    assert servers.missing(FIELD["procrastinate"]) is None
    monkeypatch.setattr(servers, "find_program", _not_found)
    assert "make lab-servers" in (servers.missing(FIELD["celery"]) or "")


def _not_found(name: str) -> str:
    from rota.errors import ConfigError

    raise ConfigError(f"The program {name} was not found: `make lab-servers` installs it on Debian")


def test_each_peer_has_a_driver() -> None:
    """Where the command line expects it."""
    for peer in FIELD.values():
        ending = "mjs" if peer.runtime == "node" else "py"
        assert (HERE / "drivers" / f"{peer.driver}.{ending}").is_file()


def test_lists_are_pinned_and_name_no_registry() -> None:
    """Versions and hashes are enough; everybody has a registry of their own."""
    text = (HERE / "requirements.txt").read_text(encoding="utf-8")
    required = [line for line in text.splitlines() if line[:1].isalpha()]
    assert required
    assert all("==" in line for line in required)
    lock = (HERE / "package-lock.json").read_text(encoding="utf-8")
    assert "://" not in text
    assert '"resolved"' not in lock
    assert "registry" not in lock
