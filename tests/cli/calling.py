"""Calling the command line: in this process, and as a process of its own."""

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from click.testing import CliRunner, Result

from rota.cli.main import cli
from rota.store.migrate import migrate
from rota.store.opening import open_store

ROTA = [sys.executable, "-m", "rota"]

SHOP = """
import logging, os, pathlib, threading
from rota import Rota

rota = Rota()

@rota.task(store_result=True)
def double(number: int) -> int:
    return 2 * number

@rota.task(queue="broken", max_attempts=1)
def fail(secret: str) -> None:
    raise ValueError("no luck")

@rota.task
def speak(word: str) -> None:
    logging.getLogger("shop").info(word)

@rota.task
async def aspeak(word: str) -> None:
    logging.getLogger("shop").info(word)

@rota.task(batch=10)
def bspeak(word: list[str]) -> None:
    logging.getLogger("shop").info(word[0])

@rota.task
def environ(mark: str) -> None:
    pathlib.Path(mark).write_text(os.environ.get("NOTIFY_SOCKET", "unset"))

@rota.task(queue="stuck")
def stuck(mark: str) -> None:
    pathlib.Path(mark).touch()
    threading.Event().wait()
"""
"""An application with its tasks, to be written to `shop.py`."""


def rota(*args: object, url: str | None = None) -> Result:
    """Run a command in this process."""
    words = [*map(str, args), *(["--url", url] if url else [])]
    return CliRunner().invoke(cli, words, prog_name="rota")


def answer(*args: object, url: str | None = None) -> Any:
    """What a command that does its work prints with `--json`."""
    result = rota(*args, "--json", url=url)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return json.loads(result.stdout)


def refused(result: Result, code: int, *words: str) -> None:
    """Check that a command said in one line what is wrong."""
    assert result.exit_code == code, result.output
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.output
    for word in words:
        assert word in result.stderr


def make_tables(url: str) -> None:
    """Bring a database up to date."""
    store = open_store(url)
    connection = store.connect()
    migrate(store, connection)
    connection.close()
    store.close()


def environment(url: str | None, **more: str) -> dict[str, str]:
    """The environment of a process whose default database is this."""
    kept = {name: value for name, value in os.environ.items() if name != "ROTA_DATABASE_URL"}
    return kept | ({"ROTA_DATABASE_URL": url} if url else {}) | more


def finished(
    *args: object, url: str | None = None, cwd: Path | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own until it ends."""
    return subprocess.run(
        [*ROTA, *map(str, args)],
        env=environment(url, **more),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@contextmanager
def started(
    *args: object, url: str | None = None, cwd: Path | None = None, **more: str
) -> Iterator[subprocess.Popen[str]]:
    """A command as a process of its own; its end is forced with the block's."""
    process = subprocess.Popen(
        [*ROTA, *map(str, args)],
        env=environment(url, **more),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def seen_on_a_terminal(*args: object, url: str | None = None) -> bytes:
    """What `rota top` draws on a terminal until it has looked, and then is told to quit."""
    terminal, its = pty.openpty()
    env = environment(url, TERM="xterm-256color", LINES="24", COLUMNS="120")
    seen, pressed = b"", False
    with subprocess.Popen(
        [*ROTA, *map(str, args)], env=env, stdin=its, stdout=its, stderr=its, start_new_session=True
    ) as process:
        os.close(its)
        try:
            while select.select([terminal], [], [], 60)[0]:
                try:
                    seen += os.read(terminal, 65536)
                except OSError:  # it has ended
                    break
                if not pressed and b"looked in" in seen:
                    os.write(terminal, b"q")
                    pressed = True
            assert process.wait(60) == 0, seen
        finally:
            process.kill()
            os.close(terminal)
    return seen


@contextmanager
def serving(*args: object, url: str | None = None) -> Iterator[str]:
    """A command that serves pages, as a process of its own; gives the address that it says."""
    with started(*args, "--listen", "0", "--json", url=url) as process:
        yield json.loads(read_until(process.stdout, "}"))["url"]


def read_until(stream: IO[str] | None, word: str) -> str:
    """Read lines up to the one that has this word; blocks until it comes."""
    assert stream is not None
    read = ""
    for line in stream:
        read += line
        if word in line:
            return read
    raise AssertionError(read)
