"""Killing a worker between sending a batch and settling it, or freezing it just before it sends."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from rota import Rota
from tests.fixtures.forks import Fork
from tests.fixtures.workers import until

HALTING = Path(__file__).with_name("halting.py")


def killed_after_sending(
    app: Rota, kind: str, arguments: dict[str, Any], folder: Path, *, name: str, batch: int
) -> None:
    """Let a worker send one batch of the relay of that name, and kill it before it settles the jobs."""
    marker = folder / "sent"
    words = [app.url, json.dumps([kind, arguments]), name, str(marker), str(batch)]
    victim = Fork(HALTING, words, folder)
    try:
        until(lambda: marker.exists() or victim.poll() is not None, "a batch to be sent")
        assert marker.exists(), victim.stderr.read()
    finally:
        victim.kill()
        victim.wait(10)
        victim.stderr.close()


@contextmanager
def frozen_before_sending(
    app: Rota, kind: str, arguments: dict[str, Any], folder: Path, *, name: str, batch: int
) -> Iterator[Fork]:
    """A worker frozen with a batch in its hands.

    `SIGCONT` lets it go on, and make the file `sent`.
    """
    words = [
        app.url,
        json.dumps([kind, arguments]),
        name,
        str(folder / "sent"),
        str(batch),
        "freeze",
    ]
    worker = Fork(HALTING, words, folder)
    try:
        process = psutil.Process(worker.pid)
        until(lambda: process.status() == psutil.STATUS_STOPPED, "the worker to freeze")
        yield worker
    finally:
        worker.kill()
        worker.wait(10)
        worker.stderr.close()
