"""Worker processes, and the process that attends to the queue where a design has it."""

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rota.errors import RotaError, StoreUnavailable
from rota.measure.processes import Group, Line
from rota_lab.location import Location
from rota_lab.shift import Shift, Told, Work
from rota_lab.strategy import strategy

LOOK = 0.05
"""Seconds between two looks at whether workers have ended."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a process shall do."""

    location: Location
    strategy: str
    settings: Mapping[str, float]
    work: Work
    drain: bool = False
    attend: bool = False


class Workers:
    """Worker processes; leaving the `with` block ends them all."""

    def __init__(self, plan: Plan, count: int) -> None:
        attended = strategy(plan.strategy).attended
        attending = Plan(plan.location, plan.strategy, plan.settings, plan.work, attend=True)
        self._name = plan.strategy
        self._attendants = Group[Told](_work, attending, 1 if attended else 0)
        self._workers = Group[Told](_work, plan, count)

    def __enter__(self) -> Self:
        """Start the processes; they wait for `go`."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._attendants)
            stack.enter_context(self._workers)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def go(self) -> float:
        """Let all begin at once; gives the moment, in seconds since the epoch."""
        self._attendants.go()
        began = time.time()
        self._workers.go()
        return began

    def tell(self) -> list[Told]:
        """What each worker has done since the last time.

        Raises:
            StoreUnavailable: A process has lost the database.
        """
        self._check(self._attendants.tell())
        return self._check(self._workers.tell())

    def until_ended(self) -> Iterator[list[Told]]:
        """Wait for the end of workers that drain; gives what each has done since the last time."""
        while True:
            told = self.tell()
            yield told
            if all(report.ended is not None for report in told):
                return
            time.sleep(LOOK)

    def replace(self) -> int:
        """Replace the workers that were killed; returns their number.

        What a killed worker has not reported is lost.
        """
        return self._workers.replace()

    def stop(self) -> list[Told]:
        """Let all end in order; returns what each worker has done since the last time."""
        told = self._workers.stop()
        self._attendants.stop()
        return told

    def _check(self, told: list[Told]) -> list[Told]:
        for report in told:
            if report.error is not None:
                raise StoreUnavailable(f"{self._name}: {report.error}")
        return told


def _work(line: Line[Told], plan: Plan) -> None:
    # Failures on purpose are not logged, and other errors are reported.
    logging.getLogger("rota").setLevel(logging.CRITICAL)
    design = strategy(plan.strategy)(plan.location, plan.settings)
    shift = Shift(plan.work, drain=plan.drain)
    with contextlib.closing(design):
        with _telling(shift):
            design.open()
        line.ready()
        line.begin(shift.told, shift.end)
        with _telling(shift):
            if shift.error is None:
                (design.attend if plan.attend else design.run)(shift)
    shift.ended = time.time()
    # The parent may still ask.
    shift.over.wait()
    line.end(shift.told())


@contextlib.contextmanager
def _telling(shift: Shift) -> Iterator[None]:
    """An error ends the shift, and is reported."""
    try:
        yield
    except RotaError as error:
        shift.error = str(error)
