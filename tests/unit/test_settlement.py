"""From the outcome of a run to what is written."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.model.backoff import Backoff, RetryPolicy
from rota.model.job import ClaimedJob, JobId, LeaseId
from rota.model.settlement import TRACEBACK_LIMIT, RemoteError, decide, error_text
from rota.model.states import MOVES, Move, State, allowed
from rota.outcome import Discard, Retry, Snooze

FIXED = Backoff(first=7, factor=1, jitter=0)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def job(attempt: int = 1, max_attempts: int = 5) -> ClaimedJob:
    """A job in the hands of a worker."""
    return ClaimedJob(
        JobId(1), LeaseId(2), "task", "{}", "queue", 0, attempt, max_attempts, None, 0.0
    )


@pytest.mark.parametrize(
    ("attempt", "raised", "policy", "move", "delay"),
    [
        (1, ValueError(), FIXED, Move.RETRY, 7),
        (4, ValueError(), FIXED, Move.RETRY, 7),
        (5, ValueError(), FIXED, Move.DISCARD, 0),
        (1, Snooze(30), FIXED, Move.SNOOZE, 30),
        (5, Snooze(timedelta(minutes=1)), FIXED, Move.SNOOZE, 60),
        (1, Discard("why"), FIXED, Move.DISCARD, 0),
        (1, Retry(after=3), FIXED, Move.RETRY, 3),
        (1, Retry(after=0), FIXED, Move.RETRY, 0),
        (1, Retry("no luck"), FIXED, Move.RETRY, 7),
        (5, Retry(after=3), FIXED, Move.DISCARD, 0),
        (2, ValueError(), lambda attempt, _: attempt * 10, Move.RETRY, 20),
        (2, ValueError(), lambda *_: timedelta(seconds=9), Move.RETRY, 9),
        (2, ValueError(), lambda *_: None, Move.DISCARD, 0),
    ],
)
def test_decide(
    attempt: int, raised: BaseException, policy: RetryPolicy, move: Move, delay: float
) -> None:
    """The whole policy: what each outcome leads to."""
    settlement = decide(job(attempt), raised, policy, now=NOW)
    assert (settlement.job, settlement.lease) == (1, 2)
    assert (settlement.move, settlement.delay) == (move, delay)
    assert (settlement.error is None) == (move is Move.SNOOZE)
    assert allowed(State.RUNNING, move)


def test_a_broken_policy_costs_no_job() -> None:
    """A policy that raises leads to a retry after the default wait, and both errors are kept."""

    def policy(_attempt: int, _error: BaseException) -> float:
        raise ZeroDivisionError("in the policy")

    settlement = decide(job(), KeyError("the job's own"), policy, now=NOW)
    assert settlement.move is Move.RETRY
    assert 0 < settlement.delay <= Backoff().first
    assert settlement.error is not None
    assert "in the policy" in settlement.error
    assert "the job's own" in settlement.error


def entry(error: BaseException) -> dict[str, Any]:
    """An error as it is stored."""
    found: dict[str, Any] = json.loads(error_text(3, error, now=NOW))
    return found


def test_error_text() -> None:
    """An error keeps its time, class, message and traceback, the end of it if it is long."""
    try:
        raise ValueError("x" * 20_000)  # noqa: TRY301
    except ValueError as error:
        found = entry(error)
    assert (found["attempt"], found["at"]) == (3, "2026-01-01T00:00:00Z")
    assert found["exception"] == "builtins.ValueError"
    assert len(found["message"]) == TRACEBACK_LIMIT
    assert len(found["traceback"]) == TRACEBACK_LIMIT


def test_errors_that_cannot_be_stored_as_they_are() -> None:
    """NUL, lone surrogates and a message that cannot be read do not hide that the job failed."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert entry(ValueError("a\0b\ud800"))["message"] == "a\\0b\\ud800"
    assert "cannot be read" in entry(MuteError())["message"]


def test_remote_errors() -> None:
    """An error of another process is kept as that process told it."""
    found = entry(RemoteError("shop.Broken", "no paper", "line 1\n"))
    assert (found["exception"], found["message"]) == ("shop.Broken", "no paper")
    assert found["traceback"] == "line 1\n"


def test_every_state_is_in_the_table() -> None:
    """Each state has its moves, finished ones only the retry by hand, and every move a target."""
    assert set(MOVES) == set(State)
    for state, moves in MOVES.items():
        assert all(moves.values())
        if state.finished:
            assert set(moves) == {Move.RETRY_BY_HAND}
