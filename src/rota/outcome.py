"""What a handler can say about its run, besides a value or an exception.

Each outcome may be returned or raised; both mean the same. They derive from `Exception` only so
that they can be raised from deep inside a handler.
"""

from datetime import datetime, timedelta

from rota.errors import ConfigError
from rota.model.durations import moment, seconds


class Outcome(Exception):
    """The closed set of answers a handler may give."""


class Snooze(Outcome):
    """Run the job again in `after` seconds (or a timedelta); no attempt is spent."""

    def __init__(self, after: float | timedelta) -> None:
        self.after = seconds(after, "Snooze")
        super().__init__(self.after)


class Again(Outcome):
    """The round ended well; run the job again in `after` seconds (or a timedelta), or `at` a time.

    The job keeps its id and its unique key. Its iterations are counted, its attempts begin anew,
    and the errors of this round are forgotten.

    Raises:
        ConfigError: Both or neither are given, `at` has no time zone, or the time is
            more than a century ahead.
    """

    def __init__(
        self, *, after: float | timedelta | None = None, at: datetime | None = None
    ) -> None:
        if (after is None) is (at is None):
            message = "Again: give either after=, in seconds, or at=, an aware datetime"
            raise ConfigError(message)
        self.after = None if after is None else seconds(after, "Again(after=…)")
        self.at = None if at is None else moment(at, "Again(at=…)")
        super().__init__(self.after if self.at is None else self.at)


class Retry(Outcome):
    """The attempt failed; try again in `after` seconds, or when the task's retry policy says."""

    def __init__(
        self,
        reason: str = "the handler asked for a retry",
        *,
        after: float | timedelta | None = None,
    ) -> None:
        self.reason = reason
        self.after = None if after is None else seconds(after, "Retry")
        super().__init__(reason)


class Discard(Outcome):
    """Give the job up for good, and keep it with this reason."""

    def __init__(self, reason: str = "the handler discarded the job") -> None:
        self.reason = reason
        super().__init__(reason)
