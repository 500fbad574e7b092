"""How text of others and tables are printed."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from rota.terminal.output import harmless, harmless_lines
from tests.cli.calling import ROTA, SHOP, environment, finished, make_tables


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, naïve, 日本", "plain text, naïve, 日本"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\u202eevil", "\\u202eevil"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud800", "\\ud800"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_harmless(text: str, shown: str) -> None:
    """Characters that do not print are written as escapes."""
    assert harmless(text) == shown


def test_harmless_lines() -> None:
    """Lines stay lines and keep their indentation; the rest is escaped."""
    assert harmless_lines("one\n\ttwo\x07\r\n") == "one\n        two\\x07\\r\n"


def test_colours_on_a_terminal_only(tmp_path: Path) -> None:
    """On a terminal an error is red, in a pipe it is not."""
    words = ("jobs", "list", "--url", f"sqlite:///{tmp_path}/typo.db")
    assert "\x1b" not in finished(*words).stderr
    ours, theirs = pty.openpty()
    run = subprocess.run(
        [*ROTA, *words], env=environment(None, TERM="xterm"), stderr=theirs, check=False
    )
    os.close(theirs)
    shown = os.read(ours, 10_000)
    os.close(ours)
    assert run.returncode == 4
    assert shown.startswith(b"\x1b[31mError: ")


@pytest.mark.parametrize(
    "words",
    [("queues", "list"), ("queues", "list", "--json"), ("jobs", "list"), ("doctor",), ("-h",)],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("where", "why"), [("/dev/full", "No space left on device"), ("&-", "Bad file descriptor")]
)
def test_output_that_cannot_be_written(
    tmp_path: Path, words: tuple[str, ...], where: str, why: str
) -> None:
    """A full disk and a closed output are an error in one line."""
    if where == "/dev/full" and not Path(where).exists():
        pytest.skip("no /dev/full")
    url = f"sqlite:///{tmp_path}/rota.db"
    make_tables(url)
    run = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" >{where}', "sh", *ROTA, *words],
        env=environment(url),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (1, f"Error: the output cannot be written: {why}\n")


def test_closed_streams(tmp_path: Path) -> None:
    """Where nothing is printed, none of the standard streams is needed."""
    url = f"sqlite:///{tmp_path}/rota.db"
    make_tables(url)
    (tmp_path / "shop.py").write_text(SHOP)
    run = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *ROTA, "worker", "shop", "--drain"],
        env=environment(url),
        cwd=tmp_path,
        check=False,
    )
    assert run.returncode == 0


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    """`rota … | head` ends without a traceback."""
    url = f"sqlite:///{tmp_path}/rota.db"
    make_tables(url)
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run(
        [*ROTA, "queues", "list", "--url", url],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert "Traceback" not in run.stderr
    assert run.returncode == 1
