"""Soft timeouts: what a handler is told of them, and the block that ends with one.

They belong to the task and not to the job, so nothing of them is stored. A run's context knows the
moment; `ctx.in_time()` is a block that an async handler, or one in a child process, cannot
overstay.
"""

import signal
import time
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, NoReturn

from rota.errors import ConfigError, SoftTimeout

if TYPE_CHECKING:
    import asyncio


class InTime:
    """The block of `ctx.in_time()`.

    Args:
        at: When the soft timeout comes, by the monotonic clock; `None`: never.
        interrupts: Whether a signal may interrupt what runs, as in a child's main thread.
    """

    __slots__ = ("_at", "_before", "_interrupts", "_scope")

    def __init__(self, at: float | None, *, interrupts: bool) -> None:
        self._at = at
        self._interrupts = interrupts
        self._scope: asyncio.Timeout | None = None
        self._before: object = None

    async def __aenter__(self) -> None:
        import asyncio  # here: `import rota` does without

        if self._at is not None:
            self._scope = asyncio.timeout(left(self._at))
            await self._scope.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._scope is not None:
            try:
                await self._scope.__aexit__(kind, error, traceback)
            except TimeoutError as expired:
                raise too_slow() from expired

    def __enter__(self) -> None:
        if self._at is None:
            return
        seconds = left(self._at)
        if not self._interrupts:
            message = (
                "ctx.in_time(): a thread cannot be interrupted; check ctx.hurry or call ctx.check_time() "
                "between its steps, or give the task executor='process'. On the loop, write async with"
            )
            raise ConfigError(message)
        self._before = signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._at is not None:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
            finally:
                signal.signal(signal.SIGALRM, self._before)  # type: ignore[arg-type]  # what was there


def checked(
    soft_timeout: float | None, timeout: float | None, task: str, *, told: bool
) -> float | None:
    """The soft timeout of a task, whose handler takes a context if it can be `told`.

    Raises:
        ConfigError: It comes after the timeout, or the handler takes no context.
    """
    if soft_timeout is None:
        return None
    fault = None
    if not told:
        fault = "the handler learns of it through a Context, so give it such a parameter"
    elif timeout is not None and soft_timeout >= timeout:
        fault = f"it must come before the timeout of {timeout} seconds"
    if fault is not None:
        message = f"task {task!r}: soft_timeout: {fault}"
        raise ConfigError(message)
    return soft_timeout


def left(at: float) -> float:
    """Seconds until then.

    Raises:
        SoftTimeout: It is past.
    """
    if (seconds := at - time.monotonic()) > 0:
        return seconds
    raise too_slow()


def too_slow() -> SoftTimeout:
    """The error of a run whose soft timeout has come."""
    return SoftTimeout("the run's soft timeout has come, and what it was doing was interrupted")


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise too_slow()
