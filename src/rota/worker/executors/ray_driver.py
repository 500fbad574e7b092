"""The driver of Ray: a process beside the worker, which alone speaks with the cluster.

Ray ends a driver at once that has lost its cluster, and takes the signals of its process for
itself. Neither may happen to a worker, which has other jobs, and other ways to stop. So this
process does what the worker says, and ends when the worker does; if it ends before that, the worker
starts another one.
"""

import asyncio
import signal
import socket
import sys
from typing import Any

import msgspec
import ray

from rota.worker.executors.ray_actor import BESIDE, Actor
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

LOOK = 0.5
"""Seconds between two looks at the machines."""


class Driver:
    """Does what the worker says."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._actors: dict[int, Any] = {}
        self._doing: set[asyncio.Task[None]] = set()

    async def obey(self, reader: asyncio.StreamReader) -> None:
        """Do what is said, until the worker is gone."""
        self._do(self._look())
        while (said := await frame(reader)) is not None:
            order: Any = msgspec.msgpack.decode(said, type=Order)
            match order:
                case Hire():
                    self._do(self._hire(order))
                case Run():
                    self._do(self._run(order))
                case Stop() if order.actor in self._actors:
                    self._actors[order.actor].stop.remote(order.key, order.place)
                case Dismiss():
                    # Ray ends an actor that nobody knows any more.
                    self._actors.pop(order.actor, None)
                case _:
                    pass

    def tell(self, news: News) -> None:
        """Tell the worker."""
        self._writer.write(framed(news))

    def _do(self, coroutine: Any) -> None:
        doing = asyncio.get_running_loop().create_task(coroutine)
        self._doing.add(doing)
        doing.add_done_callback(self._doing.discard)

    async def _look(self) -> None:
        """Tell of the machines again and again. Where the cluster is gone, nothing is told any more."""
        while True:
            # Without an answer this keeps the whole process waiting.
            known = await asyncio.to_thread(ray.nodes)
            there = {one["NodeID"]: one["Resources"] for one in known if one["Alive"]}
            self.tell(Machines(there))
            await asyncio.sleep(LOOK)

    async def _hire(self, order: Hire) -> None:
        try:
            make = ray.remote(
                max_restarts=0, max_task_retries=0, concurrency_groups={BESIDE: 2}, **order.options
            )(Actor)
            actor = self._actors[order.actor] = make.remote()
            await actor.ready.remote()
        except Exception as error:  # noqa: BLE001 - as below
            self._lose(order.actor, error)
        else:
            self.tell(Hired(order.actor))

    async def _run(self, order: Run) -> None:
        try:
            actor = self._actors[order.actor]
            async for coming in actor.run.options(num_returns="streaming").remote(order.bundle):
                last, report = await coming
                self.tell(Ended(order.actor, report) if last else Told(report))
        except Exception as error:  # noqa: BLE001 - whatever Ray says, the worker does not wait any more
            self._lose(order.actor, error)

    def _lose(self, actor: int, error: Exception) -> None:
        lost = self._actors.pop(actor, None)
        if lost is not None:
            ray.kill(lost)
        lines = str(error).strip().splitlines() or [""]
        self.tell(Lost(actor, f"{type(error).__name__}: {lines[0]}"))


async def main(address: str, end: socket.socket) -> None:
    """Connect, and do what the worker says."""
    reader, writer = await asyncio.open_connection(sock=end)
    driver = Driver(writer)
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except Exception as error:  # noqa: BLE001 - the worker says it
        lines = str(error).strip().splitlines() or [""]
        driver.tell(Failed(f"{type(error).__name__}: {lines[0]}"))
        await writer.drain()
        return
    # Ray has taken it. The end of the worker is the end.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    await driver.obey(reader)
    ray.shutdown()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    asyncio.run(main(sys.argv[1], socket.socket(fileno=int(sys.argv[2]))))
