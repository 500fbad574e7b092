"""What every call of a handler can learn about itself: its time, whether to stop, its resources."""

import threading
import time
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from rota.app.in_time import InTime, too_slow
from rota.args.provided import Need, kinds_of
from rota.errors import ConfigError

if TYPE_CHECKING:
    from rota.app.resources import Resources

T = TypeVar("T")
P = ParamSpec("P")


class Run:
    """What the context of one job and that of a batch have in common."""

    __slots__ = ("_cancelled", "_interrupts", "_noticed", "_resources", "_soft_end")

    def __init__(
        self,
        resources: "Resources | None" = None,
        soft_timeout: float | None = None,
        *,
        interrupts: bool = False,
    ) -> None:
        self._cancelled = threading.Event()
        self._noticed = False
        self._resources = resources
        self._soft_end = None if soft_timeout is None else time.monotonic() + soft_timeout
        self._interrupts = interrupts

    @property
    def cancelled(self) -> bool:
        """Whether the job was asked to stop, its time is up, or its lease was lost.

        Async handlers are cancelled automatically; a handler in a thread cannot be stopped from
        outside, so a long one checks this between its steps and returns.
        """
        self._noticed = self._noticed or self._cancelled.is_set()
        return self._noticed

    def wait_cancelled(self, seconds: float) -> bool:
        """Wait up to `seconds` for a request to stop; returns whether there is one. For threads."""
        self._cancelled.wait(seconds)
        return self.cancelled

    @property
    def noticed(self) -> bool:
        """Whether the handler has been told to stop by one of the above."""
        return self._noticed

    def request_cancel(self) -> None:
        """Tell the handler to stop; the worker calls this."""
        self._cancelled.set()

    @property
    def hurry(self) -> bool:
        """Whether the task's soft timeout has come: time to end in order, before `timeout` comes."""
        return self._soft_end is not None and time.monotonic() >= self._soft_end

    def check_time(self) -> None:
        """Raise if the task's soft timeout has come; for a thread, between its steps.

        Raises:
            SoftTimeout: It has.
        """
        if self.hurry:
            raise too_slow()

    def in_time(self) -> InTime:
        """A block that ends with a `SoftTimeout` when the task's soft timeout comes.

        `async with` on the loop, where what the block waits for is cancelled; `with` in a child
        process, where the handler is interrupted wherever it is. A thread cannot be interrupted.

        Raises:
            SoftTimeout: When the block begins, or while it runs.
            ConfigError: When a `with` block begins, if this is no child process.
        """
        return InTime(self._soft_end, interrupts=self._interrupts)

    @overload
    def resource(self, what: type[T], /) -> T: ...
    @overload
    def resource(self, what: str, /) -> Any: ...
    def resource(self, what: type[Any] | str, /) -> Any:
        """The resource that a lifespan yielded, by its type or by the lifespan's name.

        An exact type comes before a subclass of it.

        Raises:
            ConfigError: No lifespan yielded it, several yielded one of that type, or this is a
                direct call.
        """
        if self._resources is None:
            message = (
                f"ctx.resource({what!r}): a direct call has no resources; pass it as an argument"
            )
            raise ConfigError(message)
        need = Need(what) if isinstance(what, str) else Need("", kinds_of(what))
        return self._resources.find(need, f"ctx.resource({what!r})")
