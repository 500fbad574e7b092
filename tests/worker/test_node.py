"""A node's side of a cluster, called in the test's own process."""

import threading
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.model.job import ClaimedJob, JobId, LeaseId
from rota.worker.executors import node
from rota.worker.executors.bundle import Bundle, Report
from rota.worker.executors.remote import Order
from tests.fixtures.workers import until
from tests.worker import clustered

_numbers = count(1)


def order(task: Any, **args: object) -> Order:
    """An order for a task of the module."""
    number = next(_numbers)
    job = ClaimedJob(
        id=JobId(number), lease=LeaseId(1), task=task.name, args=msgspec.json.encode(args).decode(),
        queue="default", priority=0, attempt=1, max_attempts=1, timeout=None, enqueued_at=0.0,
    )  # fmt: skip
    return Order.of(task, job, 0)


class Running:
    """A bundle that runs in a thread."""

    def __init__(self, *orders: Order, **more: Any) -> None:
        self.told: list[Report] = []
        self.bundle = Bundle(f"bundle {next(_numbers)}", [*orders], **more)
        self.last: Report | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.last = run(self.bundle, self.told)

    def end(self) -> Report:
        """Wait for its end; the last report."""
        self._thread.join(20)
        assert self.last is not None
        return self.last


def run(bundle: Bundle, told: list[Report]) -> Report:
    """Run a bundle; the last report. What it reports meanwhile is added to `told`."""

    def tell(report: bytes) -> None:
        told.append(msgspec.json.decode(report, type=Report))

    return msgspec.json.decode(node.run(msgspec.json.encode(bundle), tell), type=Report)


def test_each_on_its_own() -> None:
    """The jobs of a bundle run one after another, and each has an answer."""
    orders = [order(clustered.double, number=number) for number in (3, 4)]
    orders.insert(1, order(clustered.fail, message="broken"))
    told: list[Report] = []
    report = run(Bundle("three", orders), told)
    assert [ran.place for ran in report.ran] == [0, 1, 2]
    assert [(ran.answer.kind, ran.answer.result, ran.answer.message) for ran in report.ran] == [
        ("returned", "6", ""),
        ("raised", None, "broken"),
        ("returned", "8", ""),
    ]
    assert told == []


def test_only_once() -> None:
    """A bundle that an engine runs a second time, or elsewhere than it was meant for, is refused."""
    orders = [order(clustered.double, number=1)]
    assert len(run(Bundle("once", orders), []).ran) == 1
    for refused in (Bundle("once", orders), Bundle("elsewhere", orders, node="another process")):
        with pytest.raises(node.Refused):
            run(refused, [])
    assert len(run(Bundle("here", orders, node=node.this()), []).ran) == 1


def test_a_bundle_that_takes_long(tmp_path: Path) -> None:
    """What has ended is told, and what has not begun is given back, while a job goes on."""
    folder = str(tmp_path)
    running = Running(
        order(clustered.double, number=1),
        order(clustered.linger, folder=folder, number=2),
        order(clustered.double, number=3),
    )
    until(lambda: running.told)
    [report] = running.told
    assert [ran.place for ran in report.ran] == [0]
    assert (report.withdrawn, report.running) == ([2], 1)
    clustered.note(folder, "go")
    last = running.end()
    assert ([ran.place for ran in last.ran], last.withdrawn) == ([1], [])


def test_the_beginning() -> None:
    """It is told where the worker asks for it."""
    told: list[Report] = []
    run(Bundle("watched", [order(clustered.double, number=1)], watched=True), told)
    assert [(report.key, report.ran) for report in told] == [("watched", [])]


def test_a_request_to_stop(tmp_path: Path) -> None:
    """A handler that runs is told by its context; a later word finds nobody, and is no error."""
    running = Running(order(clustered.linger, folder=str(tmp_path), number=0))
    until((tmp_path / "began-0-1").exists)
    node.stop(running.bundle.key, 0)
    [ran] = running.end().ran
    assert ran.answer.noticed
    assert (tmp_path / "stopped-0").exists()
    node.stop(running.bundle.key, 0)


def test_a_request_before_the_beginning(tmp_path: Path) -> None:
    """A job that has not begun does not begin."""
    folder = str(tmp_path)
    running = Running(*(order(clustered.linger, folder=folder, number=number) for number in (0, 1)))
    until((tmp_path / "began-0-1").exists)
    node.stop(running.bundle.key, 1)
    clustered.note(folder, "go")
    reports = [running.end(), *running.told]
    assert [place for report in reports for place in report.withdrawn] == [1]
    assert not (tmp_path / "began-1-1").exists()


def test_a_request_that_comes_first(tmp_path: Path) -> None:
    """A request to stop may be faster than its bundle."""
    folder = str(tmp_path)
    clustered.note(folder, "go")
    orders = [order(clustered.linger, folder=folder, number=number) for number in (0, 1)]
    node.stop("late", 0)
    report = run(Bundle("late", orders), [])
    assert ([ran.place for ran in report.ran], report.withdrawn) == ([1], [0])
    assert not (tmp_path / "began-0-1").exists()


def test_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the bundles that have begun, the oldest one is forgotten for a new one."""
    monkeypatch.setattr(node, "MEMORY", 2)
    monkeypatch.setattr(node, "_begun", {})
    for name in ("first", "second", "third"):
        run(Bundle(name, [order(clustered.double, number=1)]), [])
    assert [*node._begun] == ["second", "third"]


class Slow:
    """A bundle whose first report waits up to `patience` seconds for the bundle to end.

    Attributes:
        heard: All reports that the worker hears, the last one included.
    """

    def __init__(self, folder: Path, patience: float, error: Exception | None = None) -> None:
        self.heard: list[Report] = []
        self._patience, self._error = patience, error
        self._begun = threading.Event()
        first = order(clustered.double, number=1)
        second = order(clustered.linger, folder=str(folder), number=2)
        self._bundle = Bundle(f"bundle {next(_numbers)}", [first, second])
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._begun.wait(20)
        clustered.note(str(folder), "go")
        self._thread.join(20)

    def _run(self) -> None:
        self._hear(node.run(msgspec.json.encode(self._bundle), self._tell))

    def _tell(self, report: bytes) -> None:
        self._begun.set()
        self._thread.join(self._patience)
        if self._error is not None:
            raise self._error
        self._hear(report)

    def _hear(self, report: bytes) -> None:
        self.heard.append(msgspec.json.decode(report, type=Report))


@pytest.mark.parametrize("patience", [0, 0.5])
def test_reports_that_do_not_get_through(tmp_path: Path, patience: float) -> None:
    """What could not be told is told later, also where that turns out at the end of the bundle."""
    [last] = Slow(tmp_path, patience, OSError("no way")).heard
    assert sorted(ran.place for ran in last.ran) == [0, 1]


def test_a_report_that_takes_long(tmp_path: Path) -> None:
    """The last report comes last: after it the worker hears of no other."""
    first, last = Slow(tmp_path, 0.5).heard
    assert [ran.place for ran in first.ran] == [0]
    assert [ran.place for ran in last.ran] == [1]


def test_notes_that_do_not_get_through(tmp_path: Path) -> None:
    """They come with the next report that does, before what was told later."""
    failed = threading.Event()
    said: list[bytes] = []

    def tell(report: bytes) -> None:
        if msgspec.json.decode(report, type=Report).notes:
            failed.set()
        raise OSError("no way")

    bundle = Bundle(f"bundle {next(_numbers)}", [order(clustered.tell, folder=str(tmp_path))])
    thread = threading.Thread(
        target=lambda: said.append(node.run(msgspec.json.encode(bundle), tell))
    )
    thread.start()
    assert failed.wait(20)
    clustered.note(str(tmp_path), "go")
    thread.join(20)
    last = msgspec.json.decode(said[0], type=Report)
    assert [each.text for each in last.notes] == ["half", "half-way", "the end"]


def test_a_reason_that_cannot_be_sent() -> None:
    """It is made so that it can be: the answers of other jobs in the bundle travel with it."""
    orders = [order(clustered.double, number=1), order(clustered.surrogate)]
    last = run(Bundle(f"bundle {next(_numbers)}", orders), [])
    assert [each.answer.kind for each in last.ran] == ["returned", "discard"]
    assert last.ran[1].answer.message == "bad name: \\udcff"
