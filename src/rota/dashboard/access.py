"""What a request may do."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from rota.errors import ConfigError
from rota.model.audit import plain_name


class Right(StrEnum):
    """One thing that a request may do."""

    READ = "read"
    """See the pages, but not jobs' args, results and headers, nor keys, which are made of args."""
    ARGS = "args"
    """See args, results, headers, and keys; secrets stay hidden."""
    RETRY = "retry"
    """Retry jobs."""
    CANCEL = "cancel"
    """Cancel jobs."""
    DELETE = "delete"
    """Delete jobs."""
    RUN = "run"
    """Make a job of a cron entry now."""
    PAUSE = "pause"
    """Pause and resume queues and cron entries."""


LOOKING = frozenset({Right.READ, Right.ARGS})
"""Rights that change nothing."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of one request, and who makes it: a name for the audit."""

    rights: frozenset[Right]
    who: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "who", plain_name(self.who))

    @classmethod
    def none(cls) -> Self:
        """Nothing: every page is refused."""
        return cls(frozenset())

    @classmethod
    def read(cls) -> Self:
        """The pages, without args."""
        return cls(frozenset({Right.READ}))

    @classmethod
    def all(cls, *, who: str = "") -> Self:
        """Everything."""
        return cls(frozenset(Right), who)

    @classmethod
    def only(cls, *rights: str, who: str = "") -> Self:
        """The pages, and these rights beside them: `args`, `retry`, `cancel`, `delete`, `run`, `pause`.

        Raises:
            ConfigError: There is no such right.
        """
        try:
            return cls(frozenset({Right.READ, *map(Right, rights)}), who)
        except ValueError as error:
            message = f"Access.only: {error}; the rights are {', '.join(Right)}"
            raise ConfigError(message) from error

    def may(self, right: Right) -> bool:
        """Whether that is among the rights."""
        return right in self.rights

    def looking(self) -> "Access":
        """The same without the rights to change anything."""
        return Access(self.rights & LOOKING, self.who)


Accessing = Callable[[Any], Any]
"""Says what a request may do: from the framework's request to an `Access` or an awaitable."""


def check_access(access: object) -> "Access | Accessing":
    """What was given as `access=`.

    Raises:
        ConfigError: Nothing was given, or neither an `Access` nor a function.
    """
    if isinstance(access, Access) or callable(access):
        return access
    message = (
        "dashboard: say who may do what: access= takes a function from the request to an Access, such as "
        "lambda request: Access.all() if request.user.is_staff else Access.none(), or an Access for all requests"
    )
    raise ConfigError(message)


def granted(access: object) -> Access:
    """What a function has answered.

    Raises:
        ConfigError: It is no `Access`; nothing is granted then.
    """
    if isinstance(access, Access):
        return access
    message = f"dashboard: access= must return an Access, such as Access.read(), not {type(access).__name__}"
    raise ConfigError(message)
