"""Sleeping until a file is written to, as far as the system tells of that."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest

from rota.store.sqlite.alarm import SHORT, Alarm
from rota.store.sqlite.pauses import LONGEST, SHORTEST, Pauses

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

LONG = 60.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file, empty."""
    file = tmp_path / "written"
    file.touch()
    return file


@pytest.fixture
def alarm(file: Path) -> Iterator[Alarm]:
    """An alarm that has listened to the file."""
    with closing(Alarm(str(file))) as alarm:
        assert not alarm.sleep(SHORT)
        yield alarm


def ended_by(alarm: Alarm, act: Callable[[], object]) -> bool:
    """Let a thread sleep long, and end that by an act; whether it heard a write."""
    heard: list[bool] = []
    sleeper = threading.Thread(target=lambda: heard.append(alarm.sleep(LONG)), daemon=True)
    sleeper.start()
    act()
    sleeper.join(LONG / 2)
    [answer] = heard
    return answer


def test_a_write(alarm: Alarm, file: Path) -> None:
    """It ends the sleep, once, before it begins or later."""
    assert ended_by(alarm, lambda: file.write_text("1"))
    file.write_text("2")
    assert alarm.sleep(LONG)
    assert not alarm.sleep(SHORT)


def test_another_thread(alarm: Alarm) -> None:
    """It ends the sleep, too, and the alarm stays set."""
    assert not ended_by(alarm, alarm.set)
    assert alarm.is_set()
    assert not alarm.sleep(LONG)


def test_cleared(alarm: Alarm, file: Path) -> None:
    """What an earlier call of `set` has left behind ends no more than one sleep."""
    alarm.set()
    alarm.clear()
    assert not alarm.sleep(LONG)
    assert ended_by(alarm, lambda: file.write_text("1"))


def test_there_is_no_file(tmp_path: Path) -> None:
    """Then another thread ends the sleep; and writes do, as soon as there is one."""
    file = tmp_path / "later"
    with closing(Alarm(str(file))) as alarm:
        assert not alarm.sleep(SHORT)
        assert not ended_by(alarm, alarm.set)
        alarm.clear()
        file.touch()
        assert not alarm.sleep(SHORT)
        assert ended_by(alarm, lambda: file.write_text("1"))


def test_the_file_is_replaced(alarm: Alarm, file: Path) -> None:
    """Then it listens to the new one."""
    file.unlink()
    assert not alarm.sleep(LONG)
    file.touch()
    assert not alarm.sleep(SHORT)
    assert ended_by(alarm, lambda: file.write_text("1"))


def test_closed(alarm: Alarm, file: Path) -> None:
    """Then it hears nothing, and can still be set."""
    alarm.close()
    file.write_text("1")
    assert not alarm.sleep(SHORT)
    alarm.set()
    assert not alarm.sleep(LONG)


class Sleeps(Alarm):
    """Notes how long it was to sleep; some of the sleeps hear a write."""

    def __init__(self, heard: list[bool]) -> None:
        super().__init__("")
        self.heard = heard
        self.slept: list[float] = []
        self.rested: list[float] = []

    def sleep(self, timeout: float) -> bool:
        self.slept.append(timeout)
        return self.heard.pop(0)

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.rested.append(timeout)
        return False


def test_pauses(tmp_path: Path) -> None:
    """They grow where nothing happens, are tiny after a write, and never longer than asked for."""
    pauses = Pauses(str(tmp_path))
    pauses.alarm = alarm = Sleeps([False] * 20 + [True, False, False])
    for _ in range(22):
        pauses.pause(LONG)
    pauses.pause(SHORTEST / 100)
    assert alarm.slept[0] == SHORTEST
    assert alarm.slept[:20] == sorted(alarm.slept[:20])
    assert alarm.slept[20] == LONGEST
    assert alarm.slept[21] < SHORTEST / 5
    assert alarm.slept[22] == SHORTEST / 100


def test_rests(tmp_path: Path) -> None:
    """Where there is much that means nothing, they grow; where nothing is written, they are short again."""
    pauses = Pauses(str(tmp_path))
    pauses.alarm = alarm = Sleeps([True] * 20 + [False] * 30)
    for _ in range(20):
        pauses.pause(LONG)
        pauses.rest(LONG)
    assert alarm.rested == sorted(alarm.rested)
    assert (alarm.rested[0], alarm.rested[-1]) == (SHORTEST, LONGEST)
    for _ in range(30):
        pauses.pause(LONG)
    pauses.rest(LONG)
    assert alarm.rested[-1] == SHORTEST


def test_hurry(tmp_path: Path) -> None:
    """After something was found, both are short again."""
    pauses = Pauses(str(tmp_path))
    pauses.alarm = alarm = Sleeps([False] * 40)
    for _ in range(30):
        pauses.pause(LONG)
        pauses.rest(LONG)
    pauses.hurry()
    pauses.pause(LONG)
    assert alarm.slept[-1] == SHORTEST
    pauses.hurry()
    pauses.rest(LONG)
    assert alarm.rested[-1] == SHORTEST


def test_time_is_kept(file: Path) -> None:
    """A sleep that hears nothing takes its time."""
    with closing(Alarm(str(file))) as alarm:
        began = monotonic()
        assert not alarm.sleep(0.05)
        assert monotonic() - began >= 0.05
