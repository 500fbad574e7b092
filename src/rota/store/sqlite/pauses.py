"""How long a thread sleeps between two looks at whether the file has changed.

It looks 2 ms after something was found, then ever more rarely, down to every 40 ms: waking up 25
times a second costs an idle worker well under one percent of a core. Where a write is heard
(`alarm`), it looks every fraction of a millisecond at first, for the commit is under way; where the
bell is heard, it is done, and one look is enough. After looks that found nothing to do it rests,
unheeding: others' commits must not keep it busy.
"""

from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.alarm import Alarm, Sound
from rota.store.sqlite.gate import SUFFIX
from rota.store.sqlite.statements import sql

DATA_VERSION = sql("wake/data_version")

INSTANT = 0.00025
"""Seconds of the first pause after a write was heard."""

SHORTEST = 0.002
LONGEST = 0.04
GROWTH = 1.25


class Pauses:
    """The pauses of one thread.

    Args:
        path: Of the database file.

    Attributes:
        alarm: What it sleeps on.
    """

    def __init__(self, path: str) -> None:
        self.alarm = Alarm(f"{path}-wal", path + SUFFIX)
        self._nap = self._rest = SHORTEST

    def pause(self, most: float) -> None:
        """Sleep, for so many seconds at the most."""
        sound = self.alarm.sleep(max(0.0, min(self._nap, most)))
        if sound is Sound.WRITE:
            self._nap = INSTANT
            sound = self.alarm.sleep(max(0.0, min(self._nap, most)))
        if sound is Sound.BELL:
            self._nap = SHORTEST
            return
        self._nap = min(self._nap * GROWTH, LONGEST)
        if self._nap == LONGEST:  # nothing is written
            self._rest = SHORTEST

    def rest(self, most: float) -> None:
        """There was nothing to do: sleep without hearing of writes, each time longer."""
        self.alarm.wait(max(0.0, min(self._rest, most)))
        self._rest = min(self._rest * GROWTH, LONGEST)

    def hurry(self) -> None:
        """There was, or may soon be, something to do."""
        self._nap = self._rest = SHORTEST


@operation(Begin.NOTHING)
def data_version() -> Steps[int]:
    """A number that changes when another connection has committed something."""
    [(version,)] = yield DATA_VERSION()
    return int(version)
