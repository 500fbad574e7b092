"""What a handler returned that is work which nothing has done, and so no reason to complete its job."""

import contextlib
import inspect
from collections.abc import AsyncGenerator, Coroutine, Generator

from rota.app.handle import JobHandle
from rota.errors import TaskError

AWAIT = "make the handler an async def that awaits it"


def undone(value: object) -> TaskError | None:
    """The error of a run that returned this, if it is work that is not done.

    That work is ended, so that it neither goes on beside the next attempt nor warns of itself.
    """
    match value:
        case JobHandle():
            # It can be awaited, but what it stands for is stored.
            return None
        case Coroutine():
            what, cure = "a coroutine that was not awaited", AWAIT
            with contextlib.suppress(Exception):
                value.close()
        case Generator() | AsyncGenerator():
            what, cure = "a generator that nothing has run", "loop over it in the handler"
        case _ if inspect.isawaitable(value):
            # Not at the top: a child process whose handlers never await starts without asyncio.
            from asyncio import Future

            what, cure = f"{type(value).__name__} that was not awaited", AWAIT
            if isinstance(value, Future):
                what = "a future that was not awaited"
                value.cancel()
        case _:
            return None
    return TaskError(f"the handler returned {what}, so the job is not done; {cure}")
