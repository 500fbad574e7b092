"""How long a job waits between two attempts."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta  # noqa: TC003 - part of a public alias

from rota.errors import ConfigError
from rota.model.durations import seconds


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waits with jitter: `first`, `first * factor`, … seconds, at most `cap`.

    Args:
        first: Seconds before the second attempt.
        factor: What each further wait is multiplied by; 1 keeps it constant.
        cap: The longest wait in seconds.
        attempts: How many attempts a job has altogether; `None`: as its queue says, else 5.
        jitter: The share of a wait that is random, between 0 and 1: with 0.25 a wait of 8 seconds
            becomes one of 6 to 8, so that jobs that failed together do not come back together.

    Raises:
        ConfigError: A value is outside its range.
    """

    first: float = 2.0
    factor: float = 2.0
    cap: float = 3600.0
    attempts: int | None = None
    jitter: float = 0.25

    def __post_init__(self) -> None:
        seconds(self.first, "Backoff(first=…)")
        seconds(self.cap, "Backoff(cap=…)")
        if self.factor < 1:
            message = f"Backoff(factor=…): must be 1 or more, not {self.factor}"
            raise ConfigError(message)
        if not 0 <= self.jitter <= 1:
            message = f"Backoff(jitter=…): must be between 0 and 1, not {self.jitter}"
            raise ConfigError(message)
        if self.attempts is not None:
            check_attempts(self.attempts, "Backoff(attempts=…)")

    def wait(self, attempt: int, *, chance: float | None = None) -> float:
        """Seconds to wait after attempt number `attempt` (from 1) has failed.

        `chance` in [0, 1) replaces the random number, for tests.
        """
        # The exponent is bounded first: 2.0 ** 5000 overflows long before the cap is applied.
        grown = self.first * self.factor ** min(attempt - 1, 64)
        whole = min(grown, self.cap)
        drawn = random.random() if chance is None else chance  # noqa: S311 - no secret
        return whole * (1 - self.jitter * drawn)


MOST_ATTEMPTS = 30_000

RetryPolicy = Backoff | Callable[[int, BaseException], "float | timedelta | None"]
"""A `Backoff`, or a function of the failed attempt's number and its exception that returns the
seconds to wait, or `None` to discard the job."""


def check_attempts(attempts: int, what: str) -> int:
    """Check a number of attempts.

    Raises:
        ConfigError: It is not a whole number between 1 and `MOST_ATTEMPTS`.
    """
    if (
        isinstance(attempts, bool)
        or not isinstance(attempts, int)
        or not 1 <= attempts <= MOST_ATTEMPTS
    ):
        message = f"{what}: must be between 1 and {MOST_ATTEMPTS} attempts, not {attempts!r}"
        raise ConfigError(message)
    return attempts


def check_policy(policy: RetryPolicy | None) -> RetryPolicy:
    """Check a task's retry policy; `None` stands for `Backoff()`.

    Raises:
        ConfigError: It is neither a `Backoff` nor a function.
    """
    if policy is None:
        return Backoff()
    if not (isinstance(policy, Backoff) or callable(policy)):
        message = f"retry: must be a Backoff or a function, not {type(policy).__name__}"
        raise ConfigError(message)
    return policy
