"""Which exceptions a task retries: `retry_on` and `discard_on`.

Outcomes come first, and the death of a worker or a child process is no exception of the handler:
both follow the policy alone. What a child process raises is text in its parent, so the child itself
asks `allows`; what it reports as retried is not asked again.
"""

from dataclasses import dataclass
from datetime import timedelta

from rota.errors import ConfigError
from rota.model.backoff import Backoff, RetryPolicy
from rota.model.settlement import RemoteError
from rota.outcome import Outcome

Exceptions = type[BaseException] | tuple[type[BaseException], ...]
"""As `except` takes them: a class, or a tuple of classes."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A policy for the exceptions that are retried; all others discard the job at once."""

    policy: RetryPolicy
    retry_on: tuple[type[BaseException], ...] = (BaseException,)
    discard_on: tuple[type[BaseException], ...] = ()

    def allows(self, error: BaseException) -> bool:
        """Whether a run that ended with this exception may be retried."""
        return isinstance(error, self.retry_on) and not isinstance(error, self.discard_on)

    def __call__(self, attempt: int, error: BaseException) -> float | timedelta | None:
        """As a retry policy: what the inner one says, or `None`."""
        if not (isinstance(error, Outcome | RemoteError) or self.allows(error)):
            return None
        if isinstance(self.policy, Backoff):
            return self.policy.wait(attempt)
        return self.policy(attempt, error)


def choosing(
    policy: RetryPolicy, retry_on: Exceptions | None, discard_on: Exceptions | None
) -> RetryPolicy:
    """The policy, for some exceptions alone where any are named.

    Raises:
        ConfigError: Something that is named is no class of exceptions.
    """
    if retry_on is None and discard_on is None:
        return policy
    retried = (BaseException,) if retry_on is None else _classes(retry_on, "retry_on")
    return Chosen(policy, retried, () if discard_on is None else _classes(discard_on, "discard_on"))


def retries(policy: RetryPolicy, error: BaseException) -> bool:
    """Whether a policy is asked about this exception at all."""
    return not isinstance(policy, Chosen) or policy.allows(error)


def never(attempt: int, error: BaseException) -> None:
    """The policy for what another attempt would not change: no retry."""


def unchosen(policy: RetryPolicy) -> RetryPolicy:
    """The policy without a choice, for what is no exception of the handler."""
    return policy.policy if isinstance(policy, Chosen) else policy


def _classes(given: object, what: str) -> tuple[type[BaseException], ...]:
    named = given if isinstance(given, tuple) else (given,)
    for one in named:
        if not (isinstance(one, type) and issubclass(one, BaseException)):
            message = (
                f"{what}: must be an exception class or a tuple of them, such as "
                f"{what}=(TimeoutError, ConnectionError), not {one!r}"
            )
            raise ConfigError(message)
        if issubclass(one, Outcome):
            message = f"{what}: {one.__name__} is an outcome, which itself says what follows"
            raise ConfigError(message)
    if not named:
        message = f"{what}: name at least one exception class, or leave {what}= out"
        raise ConfigError(message)
    return named
