"""The program around a driver: it does what its command line says, and answers in lines of JSON.

    setup         make the tables: {"version": …}
    load COUNT    enqueue so many in bulk: {"enqueued": …, "seconds": …}
    one SECONDS, many SECONDS   enqueue one by one or in bulk for so long: the same
    produce       connect; {"ready": true}; then read a line with moments, and enqueue one at each
    work          {"ready": true}; then read a line, and work until SIGTERM

The database is that of PEERS_URL, records go to the folder PEERS_RECORDS, and PEERS_WORKERS says
how many workers there are. The process ends at once when its standard input ends.
"""

import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.drivers.driver import Driver
from benchmarks.peers.drivers.jobs import Jobs
from benchmarks.peers.records import Recorder

URL = os.environ.get("PEERS_URL", "")
WORKERS = int(os.environ.get("PEERS_WORKERS", "1"))


def serve(driver: Driver) -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["setup"]:
            _say(version=driver.setup())
        case ["work"]:
            _say(ready=True)
            _line()
            _end_with_input()
            driver.work(Recorder(Path(os.environ["PEERS_RECORDS"])))
        case ["produce"]:
            jobs = Jobs()
            driver.one_by_one(jobs.as_due(_moments))
            _say(enqueued=jobs.enqueued, seconds=jobs.seconds)
        case ["one", seconds]:
            jobs = Jobs(seconds=float(seconds))
            driver.one_by_one(jobs.one_by_one())
            _say(enqueued=jobs.enqueued, seconds=jobs.seconds)
        case ["many", seconds]:
            _in_bulk(driver, Jobs(seconds=float(seconds)))
        case ["load", count]:
            _in_bulk(driver, Jobs(count=int(count)))
        case other:
            sys.exit(f"unknown command {other}: one of setup, load, one, many, produce, work")


def _in_bulk(driver: Driver, jobs: Jobs) -> None:
    driver.in_bulk(jobs.chunks(driver.chunk))
    _say(enqueued=jobs.enqueued, seconds=jobs.seconds)


def _moments() -> Sequence[float]:
    _say(ready=True)
    line = _line()
    _end_with_input()
    moments: Sequence[float] = json.loads(line)
    return moments


def _say(**answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _line() -> bytes:
    """A line of standard input, read without a buffer, which would be locked at the end."""
    line = b""
    while not line.endswith(b"\n"):
        read = os.read(0, 1 << 16)
        if not read:
            os._exit(1)
        line += read
    return line


def _end_with_input() -> None:
    """End when whoever started this process has ended, however that came."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
