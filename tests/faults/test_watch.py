"""The worker that is woken for jobs does not come: it is killed, frozen, or cut off.

No job waits longer than a `poll`.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.processes import Ledger, WorkerProcess, until
from tests.fixtures.proxy import Proxy

POLL = 3.0

MARGIN = 1.0
"""Seconds that the machine may take beside."""


@pytest.fixture
def ledger(postgres_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """An app of the test's own."""
    with Ledger(tmp_path, postgres_url) as ledger:
        yield ledger


def kill(worker: WorkerProcess, _: Proxy, __: ExitStack) -> None:
    """End it without a word."""
    worker.signal(signal.SIGKILL)


def freeze(worker: WorkerProcess, _: Proxy, stack: ExitStack) -> None:
    """Let it stand still."""
    worker.signal(signal.SIGSTOP)
    stack.callback(os.kill, worker.pid, signal.SIGCONT)


def cut_off(_: WorkerProcess, proxy: Proxy, stack: ExitStack) -> None:
    """Let nothing through any more, in neither direction, and say nothing of it."""
    stack.enter_context(proxy.silent())


@pytest.mark.parametrize("fault", [kill, freeze, cut_off])
def test_the_one_that_is_woken_does_not_come(
    ledger: Ledger, postgres_url: str, fault: Callable[[WorkerProcess, Proxy, ExitStack], None]
) -> None:
    """Another worker finds the jobs within a `poll`, those of the first moment and the later ones."""
    with Proxy(postgres_url) as proxy, ExitStack() as stack:
        watching = ledger.worker(url=proxy.url, poll=POLL, session_timeout=60.0)
        ledger.quick.enqueue(0)
        until(lambda: ledger.ended(1), "the first worker to run a job, which has the watch then")
        for _ in range(2):
            ledger.worker(poll=POLL, session_timeout=60.0)
        fault(watching, proxy, stack)
        waited = []
        for number in range(1, 8):
            since = time.monotonic()
            ledger.quick.enqueue(number)
            until(lambda number=number: ledger.noted("end")[number], "the job to run elsewhere")  # type: ignore[misc]
            waited.append(time.monotonic() - since)
        assert max(waited) < POLL + MARGIN
    assert ledger.noted("start") == dict.fromkeys(range(8), 1)


@pytest.mark.parametrize("fault", [kill, freeze, cut_off])
def test_most_of_those_who_look_have_gone(
    ledger: Ledger, postgres_url: str, fault: Callable[[WorkerProcess, Proxy, ExitStack], None]
) -> None:
    """The one of four that is left has every fourth turn: what is due waits for two `poll`.

    That is long before the workers that have gone are rescued.
    """
    poll, delay = 1.0, 0.5
    with Proxy(postgres_url) as proxy, ExitStack() as stack:
        gone = [ledger.worker(url=proxy.url, poll=poll, session_timeout=60.0) for _ in range(3)]
        ledger.quick.enqueue(0)
        until(lambda: ledger.ended(1), "a worker to run a job")
        ledger.worker(poll=poll, session_timeout=60.0)
        for worker in gone:
            fault(worker, proxy, stack)
        waited = []
        for number in range(1, 6):
            since = time.monotonic()
            ledger.quick.using(delay=delay).enqueue(number)
            until(lambda number=number: ledger.noted("end")[number], "the job to run")  # type: ignore[misc]
            waited.append(time.monotonic() - since)
        assert max(waited) < delay + 2 * poll + MARGIN
