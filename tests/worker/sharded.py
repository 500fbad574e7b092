"""An app with several databases that child processes import; `ROTA_SHARDS` says which."""

import os
import time
from pathlib import Path

from rota import Rota
from tests.worker import clustered

LONGEST = 15.0
"""Seconds that a handler waits for others, at the most."""

rota = Rota.shards(key="{tenant}")


@rota.task(name="there", executor="process", store_result=True)
def there() -> str:
    """Say where this runs, and put a job beside this one."""
    left.enqueue()
    return rota.here


@rota.task(name="met", executor="process", store_result=True)
def met(folder: str, number: int, together: int) -> int:
    """Say that it has begun, and wait until so many have; in which process this is."""
    clustered.note(folder, f"began-{number}")
    end = time.monotonic() + LONGEST
    while len(list(Path(folder).glob("began-*"))) < together and time.monotonic() < end:
        time.sleep(0.01)
    return os.getpid()


@rota.task(name="left", queue="left")
def left() -> None:
    """Nothing: it is not run."""
