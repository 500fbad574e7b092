"""The notification protocol of systemd."""

import logging
import os
from pathlib import Path

import pytest

from rota.service.notify import Notifier
from tests.service.managers import listening


@pytest.mark.parametrize("abstract", [False, True])
def test_a_message(tmp_path: Path, *, abstract: bool) -> None:
    """A message is one datagram with a line for each thing; a line of text stays one."""
    with listening(tmp_path, abstract=abstract) as manager:
        notifier = Notifier(manager.name)
        notifier.tell("READY=1", "STATUS=all\nis well")
        assert manager.heard() == ["READY=1", "STATUS=all is well"]
        notifier.close()


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The variables are read, and are not there for programs that this one starts."""
    with listening(tmp_path) as manager:
        monkeypatch.setenv("NOTIFY_SOCKET", manager.name)
        monkeypatch.setenv("WATCHDOG_USEC", "2500000")
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
        notifier = Notifier.from_environment()
        assert notifier is not None
        assert notifier.watchdog == 2.5
        notifier.tell("READY=1")
        assert manager.heard() == ["READY=1"]
        notifier.close()
    assert not os.environ.keys() & {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}


@pytest.mark.parametrize(
    ("microseconds", "process"),
    [("", ""), ("0", ""), ("soon", ""), ("-5", ""), ("2500000", "1")],
)
def test_no_watchdog(monkeypatch: pytest.MonkeyPatch, microseconds: str, process: str) -> None:
    """Signs of life are given only where they are wanted, and wanted of this process."""
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere")
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    monkeypatch.setenv("WATCHDOG_PID", process)
    notifier = Notifier.from_environment()
    assert notifier is not None
    assert notifier.watchdog is None
    notifier.close()


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "relative"])
def test_no_socket(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Where there is no manager, or none on this machine, nothing is told."""
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert Notifier.from_environment() is None


def test_a_manager_that_has_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A worker goes on where no manager listens, and warns of that once."""
    caplog.set_level(logging.WARNING, "rota")
    notifier = Notifier(str(tmp_path / "gone"))
    notifier.tell("READY=1")
    notifier.tell("STATUS=well")
    notifier.close()
    assert len(caplog.records) == 1
    assert "systemd cannot be notified" in caplog.text
