"""The engine Ray: bundles run in actors, which a driver makes in a process of its own (`ray_driver`).

An actor holds what its jobs need (cores, GPUs, memory) as long as there is something for it to do,
and a little longer. How many there may be follows what the cluster's machines have; where an actor
has its place is Ray's decision. Ray repeats nothing: an actor that is lost is not made again, nor
its bundle.
"""

import asyncio
import contextlib
import itertools
import logging
import socket
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import msgspec

from rota.errors import ConfigError
from rota.model.settlement import NodeLost
from rota.worker.executors.engine import Hear
from rota.worker.executors.ray_words import (
    Dismiss,
    Ended,
    Failed,
    Hire,
    Hired,
    Lost,
    Machines,
    News,
    Order,
    Run,
    Stop,
    Told,
    frame,
    framed,
)

logger = logging.getLogger("rota")

TIMEOUT = 30.0
"""Seconds in which a driver must find the cluster."""

SILENCE = 15.0
"""Seconds without a driver's report on machines, two a second, after which the cluster is lost."""

ENDING = 5.0
"""Seconds in which a driver may leave the cluster."""

AGAIN = 2.0
"""Seconds until a lost cluster is sought again, and an actor that could not begin is made again."""

IDLE = 5.0
"""Seconds for which an actor is kept that has nothing to do."""

Amounts = Mapping[str, float]
"""So much of each of Ray's resources."""


class Machine:
    """One of the cluster's."""

    def __init__(self, has: Amounts) -> None:
        self.has = has
        self.left = dict(has)

    def suits(self, wanted: Amounts) -> bool:
        """Whether it has so much to spare."""
        return _within(wanted, self.left)


class Actor:
    """A process that runs one bundle at a time; it is a slot.

    Attributes:
        number: What the driver calls it.
        kind: What it was made with.
        hired: Whether it is there.
        running: Done with the last report of its bundle.
        lost: Why it is gone.
    """

    node = None

    def __init__(self, number: int, kind: str, wanted: Amounts, machine: Machine) -> None:
        self.number = number
        self.kind = kind
        self.hired = False
        self.running: asyncio.Future[bytes] | None = None
        self.lost: str | None = None
        self.retiring: asyncio.TimerHandle | None = None
        self._wanted = wanted
        self._machine = machine
        for name, amount in wanted.items():
            machine.left[name] -= amount

    def leave(self) -> None:
        """What it held is free again."""
        for name, amount in self._wanted.items():
            self._machine.left[name] += amount


class Ray:
    """A cluster of Ray's; `address` is what `ray.init` takes."""

    name = "Ray"

    def __init__(self, address: str) -> None:
        self.slots = 0
        self._address = address
        self._machines: dict[str, Machine] = {}
        self._actors: dict[int, Actor] = {}
        self._idle: dict[str, list[Actor]] = defaultdict(list)
        self._refused: set[str] = set()
        self._numbers = itertools.count()
        self._loop = asyncio.get_running_loop()
        self._driver: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._changed: Callable[[], None] = _nothing
        self._listening: asyncio.Task[None] | None = None

    async def connect(self, hear: Hear, changed: Callable[[], None]) -> None:
        """Find the cluster, and its machines.

        Raises:
            ConfigError: It does not answer, or Ray is not installed.
        """
        self._hear = hear
        if find_spec("ray") is None:
            message = "handlers on Ray need the package ray: pip install 'rota[ray]'"
            raise ConfigError(message)
        try:
            reader = await self._open()
        except OSError as error:
            message = f"no Ray cluster answers at {self._address}: {error}"
            raise ConfigError(message) from error
        self._changed = changed
        self._listening = self._loop.create_task(self._listen(reader))

    async def _open(self) -> asyncio.StreamReader:
        """Start a driver.

        Raises:
            OSError: It finds no cluster.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            self._driver = await drive(self._address, theirs)
        reader, self._writer = await asyncio.open_connection(sock=ours)
        first: News | None = None
        try:
            first = await asyncio.wait_for(_news(reader), TIMEOUT)
        except TimeoutError:
            first = Failed(f"it did not answer within {TIMEOUT:.0f} seconds")
        finally:
            if not isinstance(first, Machines):
                await self._end(0.0)
        if not isinstance(first, Machines):
            why = first.why if isinstance(first, Failed) else "its driver has ended"
            raise ConnectionError(why)
        self._take_in(first)
        return reader

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Hear the driver; where it is gone, so is the cluster, until another one finds it again."""
        while True:
            why = await self._hear_out(reader)
            await self._end(0.0)
            logger.warning("the Ray cluster at %s is lost: %s", self._address, why)
            for actor in [*self._actors.values()]:
                self._lose(actor, f"the Ray cluster was lost during this job: {why}")
            self._find({})
            while True:
                await asyncio.sleep(AGAIN)
                with contextlib.suppress(OSError):
                    reader = await self._open()
                    break

    async def _hear_out(self, reader: asyncio.StreamReader) -> str:
        """Hear the driver until it says no more; why that is."""
        why = "its driver has ended"
        try:
            while (news := await asyncio.wait_for(_news(reader), SILENCE)) is not None:
                if isinstance(news, Failed):
                    why = news.why
                else:
                    self._take_in(news)
        except TimeoutError:
            why = f"it has not answered for {SILENCE:.0f} seconds"
        return why

    def _take_in(self, news: News) -> None:
        match news:
            case Machines():
                self._find(news.has)
            case Hired() if news.actor in self._actors:
                actor = self._actors[news.actor]
                actor.hired = True
                self._refused.discard(actor.kind)
                self._rest(actor)
                self._changed()
            case Told():
                self._hear(news.report)
            case Ended() if news.actor in self._actors:
                actor = self._actors[news.actor]
                if actor.running is not None and not actor.running.done():
                    actor.running.set_result(news.report)
            case Lost() if news.actor in self._actors:
                actor = self._actors[news.actor]
                self._lose(actor, f"the Ray cluster lost the process of this job: {news.why}")
            case _:
                pass

    def _find(self, there: Mapping[str, Amounts]) -> None:
        """These are the machines from now on."""
        if there.keys() == self._machines.keys():
            return
        self._machines = {
            name: self._machines.get(name) or Machine(has) for name, has in there.items()
        }
        self.slots = sum(int(has.get("CPU", 0)) for has in there.values())
        self._changed()

    # Actors ----------------------------------------------------------------------------------

    def has(self, needs: Mapping[str, Any]) -> bool:
        """Whether some machine has these resources."""
        wanted = _wanted(needs)
        return any(_within(wanted, machine.has) for machine in self._machines.values())

    def take(self, needs: Mapping[str, Any]) -> Actor | None:
        """An actor that has nothing to do; if there is none, one is made, which takes a while."""
        kind = repr(needs)
        if not self._idle[kind]:
            self._hire(kind, needs)
            return None
        actor = self._idle[kind].pop()
        if actor.retiring is not None:
            actor.retiring.cancel()
        return actor

    def give(self, slot: Actor) -> None:
        """It has nothing to do again."""
        slot.running = None
        if slot.lost is None:
            self._rest(slot)

    def _hire(self, kind: str, needs: Mapping[str, Any]) -> None:
        hired = [actor.hired for actor in self._actors.values() if actor.kind == kind]
        if hired.count(False) >= max(1, hired.count(True)):
            # Twice as many as there are, and so on: more may not be needed.
            return
        wanted = _wanted(needs)
        machine = self._with_room(wanted)
        if machine is None or self._writer is None:
            return
        actor = Actor(next(self._numbers), kind, wanted, machine)
        self._actors[actor.number] = actor
        self._say(Hire(actor.number, {"num_cpus": 1, **needs}))

    def _with_room(self, wanted: Amounts) -> Machine | None:
        """A machine that has so much to spare, if need be without actors that have nothing to do."""
        while True:
            for machine in self._machines.values():
                if machine.suits(wanted):
                    return machine
            resting = [actor for every in self._idle.values() for actor in every]
            if not resting:
                return None
            self._retire(resting[0])

    def _rest(self, actor: Actor) -> None:
        self._idle[actor.kind].append(actor)
        actor.retiring = self._loop.call_later(IDLE, self._retire, actor)

    def _retire(self, actor: Actor) -> None:
        self._say(Dismiss(actor.number))
        self._forget(actor)

    def _lose(self, actor: Actor, why: str) -> None:
        actor.lost = why
        self._forget(actor)
        if not actor.hired:
            if actor.kind not in self._refused:
                self._refused.add(actor.kind)
                logger.warning("an actor of the Ray cluster could not begin: %s", why)
            self._loop.call_later(AGAIN, self._changed)
        elif actor.running is not None and not actor.running.done():
            actor.running.set_exception(NodeLost(why))

    def _forget(self, actor: Actor) -> None:
        del self._actors[actor.number]
        if actor.retiring is not None:
            actor.retiring.cancel()
        with contextlib.suppress(ValueError):
            self._idle[actor.kind].remove(actor)
        actor.leave()

    # Bundles ---------------------------------------------------------------------------------

    async def run(self, slot: Actor, bundle: bytes) -> bytes:
        """Run a bundle.

        Raises:
            NodeLost: It did not end.
        """
        if slot.lost is not None:
            raise NodeLost(slot.lost)
        slot.running = self._loop.create_future()
        self._say(Run(slot.number, bundle))
        return await slot.running

    def stop(self, slot: Actor, key: str, place: int) -> None:
        """Tell the actor, beside its bundle."""
        self._say(Stop(slot.number, key, place))

    def _say(self, order: Order) -> None:
        if self._writer is not None:
            self._writer.write(framed(order))

    # Ending ----------------------------------------------------------------------------------

    async def close(self) -> None:
        """Leave the cluster, which ends the actors."""
        if self._listening is not None:
            self._listening.cancel()
        await self._end(ENDING)

    async def _end(self, seconds: float) -> None:
        """The driver ends, by itself within so many seconds, or by force."""
        writer, self._writer = self._writer, None
        driver, self._driver = self._driver, None
        if writer is not None:
            writer.close()
        if driver is None:
            return
        try:
            await asyncio.wait_for(driver.wait(), seconds)
        except TimeoutError:
            # The driver may have ended by itself in this moment.
            with contextlib.suppress(ProcessLookupError):
                driver.kill()
            await driver.wait()


async def drive(address: str, end: socket.socket) -> asyncio.subprocess.Process:
    """Start a driver, which speaks at this end."""
    words = ["-m", "rota.worker.executors.ray_driver", address, str(end.fileno())]
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=[end.fileno()],
        # Signals of a terminal are for the worker.
        start_new_session=True,
    )


async def _news(reader: asyncio.StreamReader) -> Any:
    """What the driver says next; none where it has ended."""
    said = await frame(reader)
    return None if said is None else msgspec.msgpack.decode(said, type=News)


def _wanted(needs: Mapping[str, Any]) -> Amounts:
    """The resources of an actor, by the names that machines have for them."""
    amounts = {
        "CPU": needs.get("num_cpus", 1),
        "GPU": needs.get("num_gpus", 0),
        "memory": needs.get("memory", 0),
        **needs.get("resources", {}),
    }
    return {name: amount for name, amount in amounts.items() if amount} or {"CPU": 0.01}


def _within(wanted: Amounts, left: Amounts) -> bool:
    return all(left.get(name, 0) > amount - 1e-6 for name, amount in wanted.items())


def _nothing() -> None:
    """Nobody waits for the machines that are there from the beginning."""
