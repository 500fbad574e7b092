"""What follows from a worker's health: whether it is live, ready and sound."""

import pytest

from rota.model.job import SessionId
from rota.worker.health import Health, Phase

SEVEN = SessionId(7)
RUNNING = Phase.RUNNING
AWAY = "StoreUnavailable"


@pytest.mark.parametrize(
    ("health", "live", "ready", "sound"),
    [
        pytest.param(Health(Phase.STARTING), True, False, True, id="starting"),
        pytest.param(Health(RUNNING, SEVEN), True, True, True, id="claiming"),
        pytest.param(Health(Phase.STOPPING), True, False, True, id="stopping"),
        pytest.param(Health(Phase.ENDED), True, False, True, id="ended"),
        pytest.param(
            Health(RUNNING, SEVEN, ended=("upkeep",)), False, False, False, id="a dead thread"
        ),
        pytest.param(
            Health(RUNNING, trouble={"session": AWAY, "claimer": AWAY}),
            True, False, True, id="the database is away",
        ),
        pytest.param(
            Health(RUNNING, SEVEN, trouble={"claimer": AWAY}), True, False, True, id="cannot claim"
        ),
        pytest.param(
            Health(RUNNING, SEVEN, stuck=("claimer",)), True, False, True, id="waits to claim"
        ),
        pytest.param(
            Health(RUNNING, SEVEN, trouble={"settler": AWAY, "upkeep": AWAY}),
            True, True, True, id="others cannot write",
        ),
        pytest.param(Health(RUNNING), True, False, False, id="no session, no reason"),
        pytest.param(
            Health(RUNNING, trouble={"session": AWAY}, stuck=("session",)),
            True, False, False, id="no session, and no longer tries",
        ),
        pytest.param(
            Health(RUNNING, ended=("claimer",), trouble={"session": AWAY}),
            False, False, False, id="a dead thread while the database is away",
        ),
    ],
)  # fmt: skip
def test_verdicts(health: Health, *, live: bool, ready: bool, sound: bool) -> None:
    """Live is the process, ready is claiming, and sound is what a new process would not improve."""
    assert (health.live, health.ready, health.sound) == (live, ready, sound)
    assert bool(health.why) is not (live and ready)


@pytest.mark.parametrize(
    ("health", "words"),
    [
        (Health(Phase.STARTING), "starting"),
        (Health(RUNNING, SEVEN), "claiming, session 7"),
        (Health(RUNNING, SEVEN, 3), "claiming, session 7; 3 job(s) running"),
        (Health(Phase.STOPPING, running=2), "stopping; 2 job(s) running"),
        (
            Health(RUNNING, trouble={"session": AWAY, "claimer": AWAY}),
            (
                "it holds no session: StoreUnavailable, see the log; "
                "it cannot claim: StoreUnavailable, see the log"
            ),
        ),
        (Health(RUNNING, SEVEN, ended=("claimer",)), "the thread 'claimer' has ended"),
        (
            Health(RUNNING, SEVEN, stuck=("claimer",)),
            "it cannot claim: claimer has waited for more than 60 seconds",
        ),
    ],
)
def test_words(health: Health, words: str) -> None:
    """A line for people says what it does, else what is wrong."""
    assert health.words == words
