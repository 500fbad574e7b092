"""What a handler remembers from one run of its job to the next: steps, sleeps, and waits for signals.

    charge = await ctx.step("charge", pay, order)
    await ctx.sleep(timedelta(days=3))
    answer = await ctx.wait_for("approved", timeout=timedelta(days=7))

Each has a name, and the second one of a name the number 2: so the order in which they are asked for
means nothing, and what is not asked for any more is left alone. A name is counted when its step has
ended well, which is also why two of one name cannot be under way at once.

Written once for sync and async handlers: what is to be done is a generator of calls, whose answers
async handlers await.
"""

import functools
import inspect
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rota.app.introspection import result_annotation
from rota.app.job_transaction import Completion, Stage
from rota.app.suspended import Suspended
from rota.args.encoding import ResultCodec
from rota.database.database import Database
from rota.errors import ArgsError, ConfigError, SignalTimeout
from rota.model.durations import seconds
from rota.model.memory import FOR_EVER, MOST_BYTES, Holder, Kind, Pause, Remembered
from rota.model.options import check_name
from rota.store.execute import adrive, drive
from rota.store.operation import Operation

if TYPE_CHECKING:
    from asyncio import Future

T = TypeVar("T")

Flow = Generator[Callable[[], Any], Any, T]
"""What is to be done: calls, of which each is given its answer. Async code awaits these."""

Name = tuple[Kind, str]


class JobSteps:
    """The memory of one job, in one run of it. `awaits`: its handler is async.

    Attributes:
        completion: Under which lease it is held.
        database: Where it is kept.
        written: The steps that this run has appended, for the test kit.
    """

    def __init__(self, database: Database, completion: Completion, *, awaits: bool) -> None:
        self.database = database
        self.completion = completion
        self.written: list[tuple[str, str]] = []
        self.moving: Any = threading.Lock()
        self._awaits = awaits
        self._lock = threading.Lock()
        self._memory: dict[Name, Remembered] | None = None
        self._loaded = 0.0
        self._loading: Future[list[Remembered]] | None = None
        self._ended: Counter[Name] = Counter()
        self._begun: set[Name] = set()
        self._pauses: dict[Name, tuple[Pause, float]] = {}
        if awaits:
            from asyncio import Lock  # here: see `rota.store.execute.in_thread`

            self.moving = Lock()

    @property
    def used(self) -> bool:
        """Whether the job remembers anything."""
        return bool(self._memory)

    # What handlers ask for -------------------------------------------------------------------

    def step(self, name: str, function: Callable[..., Any], args: Any, named: Any) -> Any:
        """The result of a function that has run once, or runs now."""
        if _is_async(function) and not self._awaits:
            message = f"step {name!r}: an async function in a blocking handler; make the handler an async def"
            raise ConfigError(message)
        if self._awaits and not _is_async(function):
            message = (
                f"step {name!r}: a blocking function would hold up the event loop, and a lambda does not show "
                "whether it blocks; pass an async function and its arguments, such as asyncio.to_thread, function"
            )
            raise ConfigError(message)
        return self._run(self._step(name, partial(function, *args, **named), codec_of(function)))

    def sleep(self, duration: float | timedelta, name: str) -> Any:
        """End this run, and go on when the time is over."""
        return self._run(self._sleep(seconds(duration, "ctx.sleep"), name))

    def wait_for(self, signal: str, timeout: float | timedelta | None) -> Any:
        """What a signal has brought; ends this run until it has come, or the time is over."""
        limit = FOR_EVER if timeout is None else seconds(timeout, "ctx.wait_for")
        return self._run(self._wait_for(signal, limit))

    def _run(self, flow: Flow[T]) -> Any:
        return adrive(flow, later) if self._awaits else drive(flow, now)

    def run(self, operation: Operation[Any]) -> Any:
        """Run an operation; for async handlers something to await."""
        return (self.database.arun if self._awaits else self.database.run)(operation)

    def _step(self, name: str, call: Callable[[], Any], codec: ResultCodec) -> Flow[Any]:
        key = self.begin(Kind.STEP, name)
        ended = False
        try:
            found = yield from self.find(Kind.STEP, key)
            if found is None:
                text = encoded(name, codec, (yield call))
                yield from self.append(
                    lambda holder: self.database.store.memory.remember(holder, key, text)
                )
                self.written.append((key, text))
                found = self.keep(Kind.STEP, key, text)
            ended = True
            return decoded(name, codec, found)
        finally:
            self.end(Kind.STEP, name, ended=ended)

    def _sleep(self, duration: float, name: str) -> Flow[None]:
        key = self.begin(Kind.SLEEP, name)
        ended = False
        try:
            found = yield from self.find(Kind.SLEEP, key)
            left = self._left(found, duration)
            if left > 0:
                self._suspend(Pause(Kind.SLEEP, key, left, None, found and found.until))
            ended = True
        finally:
            self.end(Kind.SLEEP, name, ended=ended)

    def _wait_for(self, signal: str, limit: float) -> Flow[Any]:
        key = self.begin(Kind.WAIT, signal)
        ended = False
        try:
            found = yield from self.find(Kind.ANSWER, key)
            if found is None:
                found = yield from self._answer(signal, key, limit)
            ended = True
            if found.signal is None:
                message = f"job {self.completion.job.id}: no signal {signal!r} came in time"
                raise SignalTimeout(message)
            return decoded(signal, ANYTHING, found)
        finally:
            self.end(Kind.WAIT, signal, ended=ended)

    def _answer(self, signal: str, key: str, limit: float) -> Flow[Remembered]:
        began = yield from self.find(Kind.WAIT, key)
        left = self._left(began, limit)
        self._pause(Pause(Kind.WAIT, key, max(0.0, left), signal, began and began.until))
        answer = yield from self.append(
            lambda holder: self.database.store.memory.answer(holder, key, signal, over=left <= 0)
        )
        if not answer.ended:
            raise Suspended(self.pauses)
        del self._pauses[Kind.WAIT, key]
        return self.keep(Kind.ANSWER, key, answer.value, answer.signal)

    # Names -----------------------------------------------------------------------------------

    def begin(self, kind: Kind, name: str) -> str:
        """Begin what has this name; the key of its turn.

        Raises:
            ConfigError: It is no name, another one of it is under way, or the job is completed or
                in a transaction.
        """
        check_name(name, kind.value)
        if "#" in name:
            message = f"{kind.value} {name!r}: a name cannot contain #, which marks the number of a repeated name"
            raise ConfigError(message)
        if self.completion.stage is not Stage.NONE:
            message = (
                f"{kind.value} {name!r}: ctx.transaction() completes the job, which remembers nothing in it or after it; put "
                "the step before it, or use ctx.step_transaction()"
            )
            raise ConfigError(message)
        with self._lock:
            if (kind, name) in self._begun:
                message = (
                    f"{kind.value} {name!r} is already under way in this job; whatever goes on at the same time needs "
                    "another name"
                )
                raise ConfigError(message)
            self._begun.add((kind, name))
            turn = self._ended[kind, name] + 1
        return name if turn == 1 else f"{name}#{turn}"

    def end(self, kind: Kind, name: str, *, ended: bool) -> None:
        """End it; one that has `ended` well is not asked for again."""
        with self._lock:
            self._begun.discard((kind, name))
            self._ended[kind, name] += ended

    # Memory ----------------------------------------------------------------------------------

    def find(self, kind: Kind, key: str) -> Flow[Remembered | None]:
        """What is remembered under a key. The first question loads everything."""
        if self._memory is None:
            rows = yield self._aload if self._awaits else self._load
            if self._memory is None:
                self._loaded = time.monotonic()
                self._memory = {(row.kind, row.name): row for row in rows}
        return self._memory.get((kind, key))

    def keep(
        self, kind: Kind, key: str, value: str | None, signal: str | None = None
    ) -> Remembered:
        """Remember in this run, too, what was appended."""
        row = Remembered(0, kind, key, signal, value, _NEVER, None, None)
        assert self._memory is not None  # noqa: S101 - it was looked for before
        self._memory[kind, key] = row
        return row

    def append(
        self,
        make: Callable[[Holder], Operation[Any]],
        run: Callable[[Operation[Any]], Any] | None = None,
    ) -> Flow[Any]:
        """Append to memory, under the lease of this moment; `run`: in a transaction.

        Raises:
            LeaseLost: The job is not held by this worker any more.
        """
        while True:
            lease = self.completion.job.lease
            holder = Holder(self.completion.session, lease, self.completion.job.id)
            answer = yield partial(run or self.run, make(holder))
            if answer:
                return answer
            # A transaction of a step beside this one may give the job another lease just now.
            yield self.moving.acquire
            self.moving.release()
            self.completion.require(held=self.completion.job.lease != lease)

    def single_out(self) -> Flow[None]:
        """Give the job a lease of its own, before a transaction that will lock it.

        Raises:
            LeaseLost: The job is not held by this worker any more.
        """
        call = partial(self.completion.single_out, self.database)
        yield self.moving.acquire
        try:
            yield partial(self.database.aside, call) if self._awaits else call
        finally:
            self.moving.release()

    def _loads(self) -> Operation[Any]:
        return self.database.store.memory.load([self.completion.job.id])

    def _load(self) -> Iterable[Remembered]:
        rows: Iterable[Remembered] = self.database.run(self._loads()).get(
            self.completion.job.id, ()
        )
        return rows

    async def _aload(self) -> Iterable[Remembered]:
        """Load once for all that ask at the same time.

        They go on together, so that each says what it waits for.
        """
        import asyncio  # here: see `rota.store.execute.in_thread`

        if self._loading is None or self._loading.done():
            self._loading = asyncio.ensure_future(self._read())
        return await asyncio.shield(self._loading)

    async def _read(self) -> list[Remembered]:
        rows = await self.database.arun(self._loads())
        return list(rows.get(self.completion.job.id, ()))

    # Pauses ----------------------------------------------------------------------------------

    def _left(self, found: Remembered | None, whole: float) -> float:
        if found is None or found.left is None:
            return whole
        return found.left - (time.monotonic() - self._loaded)

    def pauses(self) -> tuple[Pause, ...]:
        """What the job sleeps and waits for, by what is left now."""
        now = time.monotonic()
        return tuple(
            pause._replace(seconds=max(0.0, end - now)) for pause, end in self._pauses.values()
        )

    def _pause(self, pause: Pause) -> None:
        self._pauses[pause.kind, pause.name] = pause, time.monotonic() + pause.seconds

    def _suspend(self, pause: Pause) -> None:
        self._pause(pause)
        raise Suspended(self.pauses)


def encoded(name: str, codec: ResultCodec, value: object) -> str:
    """The result of a step as JSON text.

    Raises:
        ArgsError: It does not fit the function's annotation, would come back changed, or is too
            large.
    """
    try:
        text = codec.encode(value)
    except ArgsError as error:
        message = f"step {name!r} has run, but its result cannot be remembered: {error}"
        raise ArgsError(message) from error
    return within(text, f"step {name!r} has run, but its result")


def within(text: str, what: str) -> str:
    """The text, if it is not too long.

    Raises:
        ArgsError: It is.
    """
    if (size := len(text.encode())) > MOST_BYTES:
        message = (
            f"{what} is {size:,} bytes, the limit is {MOST_BYTES:,}; store the data elsewhere and pass a "
            "reference"
        )
        raise ArgsError(message)
    return text


def decoded(name: str, codec: ResultCodec, found: Remembered) -> Any:
    """What is remembered, as its type.

    Raises:
        ArgsError: It does not fit the function's annotation any more.
    """
    try:
        return codec.decode(found.value or "null")
    except ArgsError as error:
        message = f"{found.kind.value} {name!r}: {error}; if it has changed, give it a new name"
        raise ArgsError(message) from error


def codec_of(function: Callable[..., Any]) -> ResultCodec:
    """What writes and reads the results of a function."""
    while isinstance(function, partial):
        function = function.func
    if not inspect.isroutine(function):
        function = getattr(function, "__call__", function)  # noqa: B004 - an object that can be called
    try:
        annotation = result_annotation(function)
    except TypeError:
        return ANYTHING
    if annotation is Any:
        return ANYTHING
    try:
        return _codec(annotation)
    except TypeError:
        return ResultCodec(annotation)


@functools.lru_cache(maxsize=256)
def _codec(annotation: object) -> ResultCodec:
    return ResultCodec(annotation)


ANYTHING = ResultCodec(Any)
_NEVER = datetime.fromtimestamp(0, UTC)


def _is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object that can be called
    )


def now(call: Callable[[], T]) -> T:
    """Make a call."""
    return call()


async def later(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call and await what it gives."""
    return await call()
