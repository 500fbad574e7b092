"""Sleeping until a file is written to, or a bell rings, as far as the system tells of that."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest

from rota.store.sqlite import ear
from rota.store.sqlite.alarm import SHORT, Alarm, Sound
from rota.store.sqlite.gate import SUFFIX, Gate
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
def gate(file: Path) -> Iterator[Gate]:
    """A gate through which somebody has gone."""
    with closing(Gate(str(file))) as gate:
        gate.enter()
        gate.leave()
        yield gate


@pytest.fixture
def alarm(file: Path, gate: Gate) -> Iterator[Alarm]:
    """An alarm that has listened to the file."""
    assert not gate.held
    with closing(alarm_of(file)) as alarm:
        assert alarm.sleep(SHORT) is Sound.NONE
        yield alarm


def alarm_of(file: Path) -> Alarm:
    """An alarm of a database's file."""
    return Alarm(str(file), f"{file}{SUFFIX}")


def ended_by(alarm: Alarm, act: Callable[[], object]) -> Sound:
    """Let a thread sleep long, and end that by an act; what it heard."""
    heard: list[Sound] = []
    sleeper = threading.Thread(target=lambda: heard.append(alarm.sleep(LONG)), daemon=True)
    sleeper.start()
    act()
    sleeper.join(LONG / 2)
    [answer] = heard
    return answer


def test_a_write(alarm: Alarm, file: Path) -> None:
    """It ends the sleep, once, before it begins or later."""
    assert ended_by(alarm, lambda: file.write_text("1")) is Sound.WRITE
    file.write_text("2")
    assert alarm.sleep(LONG) is Sound.WRITE
    assert alarm.sleep(SHORT) is Sound.NONE


def test_the_bell(alarm: Alarm, gate: Gate, file: Path) -> None:
    """It ends every sleep, and says more than a write."""
    assert ended_by(alarm, gate.ring) is Sound.BELL
    file.write_text("1")
    gate.ring()
    assert alarm.sleep(LONG) is Sound.BELL
    assert alarm.sleep(SHORT) is Sound.NONE


def test_a_short_sleep(alarm: Alarm, gate: Gate, file: Path) -> None:
    """The bell ends it, and writes do not: the next one hears of them."""
    file.write_text("1")
    assert alarm.sleep(SHORT / 2) is Sound.NONE
    assert alarm.sleep(LONG) is Sound.WRITE
    gate.ring()
    assert alarm.sleep(SHORT / 2) is Sound.BELL


def test_many_files(alarm: Alarm, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with more files than the quick way of waiting can take sleeps all the same."""
    monkeypatch.setattr(ear, "FEW", 0)
    assert alarm.sleep(SHORT / 2) is Sound.NONE
    gate.ring()
    assert alarm.sleep(SHORT / 2) is Sound.BELL


def test_a_gate_of_before(file: Path) -> None:
    """A lock file that an older version has made rings, too: it was empty."""
    Path(f"{file}{SUFFIX}").touch()
    with closing(Gate(str(file))) as gate, closing(alarm_of(file)) as alarm:
        gate.enter()
        gate.leave()
        assert alarm.sleep(SHORT) is Sound.NONE
        assert ended_by(alarm, gate.ring) is Sound.BELL


def test_no_gate(file: Path) -> None:
    """Where there is no lock file there is no bell, and writes are heard."""
    with closing(alarm_of(file)) as alarm:
        assert alarm.sleep(SHORT) is Sound.NONE
        assert ended_by(alarm, lambda: file.write_text("1")) is Sound.WRITE


def test_another_thread(alarm: Alarm) -> None:
    """It ends the sleep, too, and the alarm stays set."""
    assert ended_by(alarm, alarm.set) is Sound.NONE
    assert alarm.is_set()
    assert alarm.sleep(LONG) is Sound.NONE


def test_cleared(alarm: Alarm, file: Path) -> None:
    """What an earlier call of `set` has left behind ends no more than one sleep."""
    alarm.set()
    alarm.clear()
    assert alarm.sleep(LONG) is Sound.NONE
    assert ended_by(alarm, lambda: file.write_text("1")) is Sound.WRITE


def test_there_is_no_file(tmp_path: Path) -> None:
    """Then another thread ends the sleep; and writes do, as soon as there is one."""
    file = tmp_path / "later"
    with closing(alarm_of(file)) as alarm:
        assert alarm.sleep(SHORT) is Sound.NONE
        assert ended_by(alarm, alarm.set) is Sound.NONE
        alarm.clear()
        file.touch()
        assert alarm.sleep(SHORT) is Sound.NONE
        assert ended_by(alarm, lambda: file.write_text("1")) is Sound.WRITE


def test_the_file_is_replaced(alarm: Alarm, file: Path) -> None:
    """Then it listens to the new one."""
    file.unlink()
    assert alarm.sleep(LONG) is Sound.NONE
    file.touch()
    assert alarm.sleep(SHORT) is Sound.NONE
    assert ended_by(alarm, lambda: file.write_text("1")) is Sound.WRITE


def test_closed(alarm: Alarm, file: Path) -> None:
    """Then it hears nothing, and can still be set."""
    alarm.close()
    file.write_text("1")
    assert alarm.sleep(SHORT) is Sound.NONE
    alarm.set()
    assert alarm.sleep(LONG) is Sound.NONE


class Sleeps(Alarm):
    """Notes how long it was to sleep; some of the sleeps hear something."""

    def __init__(self, heard: list[Sound]) -> None:
        super().__init__("", "")
        self.heard = heard
        self.slept: list[float] = []
        self.rested: list[float] = []

    def sleep(self, timeout: float) -> Sound:
        self.slept.append(timeout)
        return self.heard.pop(0)

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.rested.append(timeout)
        return False


def test_pauses(tmp_path: Path) -> None:
    """They grow while nothing happens, are tiny after a write, and short after the bell.

    They are never longer than asked for.
    """
    pauses = Pauses(str(tmp_path))
    none, write, bell = Sound.NONE, Sound.WRITE, Sound.BELL
    pauses.alarm = alarm = Sleeps([none] * 20 + [write, none, none, write, bell, none, none])
    for _ in range(24):
        pauses.pause(LONG)
    pauses.pause(SHORTEST / 100)
    assert alarm.slept[0] == SHORTEST
    assert alarm.slept[:20] == sorted(alarm.slept[:20])
    assert alarm.slept[20] == LONGEST
    assert alarm.slept[21] < alarm.slept[22] < SHORTEST / 5
    assert alarm.slept[24] == alarm.slept[21]
    assert alarm.slept[25:] == [SHORTEST, SHORTEST / 100]


def test_rests(tmp_path: Path) -> None:
    """They grow where many writes mean nothing, and are short again where nothing is written."""
    pauses = Pauses(str(tmp_path))
    pauses.alarm = alarm = Sleeps([Sound.WRITE, Sound.NONE] * 20 + [Sound.NONE] * 30)
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
    pauses.alarm = alarm = Sleeps([Sound.NONE] * 40)
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
    with closing(alarm_of(file)) as alarm:
        for seconds in (SHORT / 2, 0.05):
            began = monotonic()
            assert alarm.sleep(seconds) is Sound.NONE
            assert monotonic() - began >= seconds
