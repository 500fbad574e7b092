"""A queue that loses or repeats jobs, or fails, has no figures."""

import sys

import pytest

from benchmarks.peers import processes, turns
from benchmarks.peers.field import Peer
from benchmarks.peers.measurements import DRAIN, LATENCY, MANY, MEASUREMENTS, ONE, Measurement
from benchmarks.peers.samples import Figures, Sample
from benchmarks.peers.servers import Servers
from rota.terminal.progress import Silent

FLAWED = Peer(
    name="flawed", title="Flawed", driver="flawed", runtime="rota", kind="sqlite",
    waiting="SELECT count(*) FROM job", pace=1000, settings="",
)  # fmt: skip


@pytest.fixture
def flaw(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let peers be the flawed queue, with the flaw that is the parameter."""
    command = [sys.executable, "-m", "benchmarks.peers.tests.flawed"]
    monkeypatch.setattr(processes, "program", lambda _: command)
    found: str = getattr(request, "param", "")
    monkeypatch.setenv("PEERS_FLAW", found)
    return found


def sample(measurement: str) -> tuple[Sample, turns.Run]:
    """One sample of the flawed queue, with few jobs, and the run that took it."""
    plan = [turns.Turn(2, measurement, FLAWED)]
    run = turns.take(plan, Servers(None, None), 0.2, Silent())
    (found,) = run.samples
    assert (found.round, found.measurement, found.peer) == (2, measurement, "flawed")
    return found, run


@pytest.mark.large
@pytest.mark.usefixtures("flaw")
@pytest.mark.parametrize("measurement", [ONE, MANY, DRAIN, LATENCY])
def test_a_sound_queue_has_figures(measurement: str) -> None:
    """Whatever is measured, and its version is known."""
    found, run = sample(measurement)
    assert found.failure is None
    assert found.figures["jobs"]
    assert run.versions == {"flawed": "0.1"}


@pytest.mark.large
@pytest.mark.usefixtures("flaw")
@pytest.mark.parametrize(
    ("flaw", "measurement", "said"),
    [
        ("loses", DRAIN, "lost 1 of 200 jobs"),
        ("repeats", DRAIN, "repeated 1 of 200 jobs"),
        ("loses", LATENCY, "lost 1 of 10 jobs"),
        ("repeats", LATENCY, "repeated 1 of 10 jobs"),
    ],
    indirect=["flaw"],
)
def test_a_job_that_did_not_run_once(measurement: str, said: str) -> None:
    """The sample says how many there are, and has no figures."""
    found, _ = sample(measurement)
    assert (found.failure, found.figures) == (said, {})


@pytest.mark.usefixtures("flaw")
@pytest.mark.parametrize("flaw", ["forgets"], indirect=True)
def test_a_job_that_was_not_enqueued() -> None:
    """The rate of an enqueue that stores nothing is none."""
    found, _ = sample(ONE)
    assert found.figures == {}
    assert found.failure is not None
    assert found.failure.startswith("enqueued ")


def test_a_run_that_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps what was measured by then."""
    taken = [("0.1", {"per_second": 5})]

    def take(*_: object) -> tuple[str, Figures]:
        if not taken:
            raise KeyboardInterrupt
        return taken.pop()

    monkeypatch.setitem(MEASUREMENTS, DRAIN, Measurement(take=take))
    plan = [turns.Turn(number, DRAIN, FLAWED) for number in (1, 2)]
    run = turns.take(plan, Servers(None, None), 0.1, Silent())
    assert [found.round for found in run.samples] == [1]
    assert run.stopped_by == "Ctrl-C"


@pytest.mark.usefixtures("flaw")
@pytest.mark.parametrize("flaw", ["fails"], indirect=True)
def test_a_driver_that_fails() -> None:
    """Its last words are the failure, and the run goes on."""
    plan = [turns.Turn(number, DRAIN, FLAWED) for number in (1, 2)]
    run = turns.take(plan, Servers(None, None), 0.1, Silent())
    said = "the driver ended early: the table cannot be made"
    assert [found.failure for found in run.samples] == [said, said]
