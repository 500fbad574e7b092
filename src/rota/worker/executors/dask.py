"""The engine Dask: bundles are tasks of a Dask cluster, on nodes that the worker chooses.

Dask runs the tasks of a worker that was lost again elsewhere, as often as its scheduler's settings
say, and no client can turn that off. So each bundle is bound to one node: where that is gone, Dask
keeps it waiting, and it is cancelled here. A node that comes back under its old address refuses a
bundle that was meant for its predecessor, or that has begun before (`node`).
"""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from rota.errors import ConfigError
from rota.model.settlement import NodeLost
from rota.worker.executors import node
from rota.worker.executors.engine import Hear

logger = logging.getLogger("rota")

LOOK = 0.5
"""Seconds between two looks at the nodes."""

TAKES = "running"
"""What Dask says of a node that takes bundles."""

HOLDS = frozenset({TAKES, "paused", "closing_gracefully"})
"""What it says of those that go on with what they have. One whose memory is nearly full pauses."""

TIMEOUT = 10.0
"""Seconds in which the scheduler must answer, and a new node."""

ENDING = 5.0
"""Seconds in which a worker leaves the cluster, whatever its scheduler says."""


def run(bundle: bytes, topic: str) -> bytes:
    """What Dask runs on a node."""
    from distributed import get_worker

    return node.run(bundle, partial(get_worker().log_event, topic))


class Node:
    """A worker process of Dask's.

    Attributes:
        address: Where it is.
        node: Which process it is.
        lost: Done once it is gone.
        takes: Whether it takes bundles now.
    """

    def __init__(self, address: str, process: str, said: Mapping[str, Any]) -> None:
        self.address = address
        self.node = process
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.takes = said["status"] == TAKES
        self.threads: int = said["nthreads"]
        self.has: Mapping[str, float] = said["resources"]
        self.free = self.threads
        self.left = dict(self.has)

    def suits(self, wanted: Mapping[str, float], left: Mapping[str, float]) -> bool:
        """Whether these resources are among those that are left."""
        return all(left.get(name, 0) >= amount for name, amount in wanted.items())


class Slot:
    """A thread of a node, with resources."""

    def __init__(self, of: Node, wanted: Mapping[str, float]) -> None:
        self.of = of
        self.node = of.node
        self.wanted = wanted


class Dask:
    """A cluster of Dask's; `address` is its scheduler's."""

    name = "Dask"

    def __init__(self, address: str) -> None:
        self.slots = 0
        self._address = address
        self._topic = f"rota-{uuid.uuid4().hex}"
        self._nodes: dict[str, Node] = {}
        self._meeting: set[str] = set()
        self._strange: set[str] = set()
        self._client: Any = None
        self._stream: Any = None
        self._changed: Callable[[], None] = _nothing
        self._doing: set[asyncio.Task[None]] = set()

    async def connect(self, hear: Hear, changed: Callable[[], None]) -> None:
        """Find the scheduler, and its nodes.

        Raises:
            ConfigError: It does not answer, or Dask is not installed.
        """
        self._hear = hear
        try:
            await self._open()
            await self._look()
        except ImportError as error:
            message = "handlers on Dask need the package distributed: pip install 'rota[dask]'"
            raise ConfigError(message) from error
        except (OSError, ValueError) as error:
            message = f"no Dask scheduler answers at {self._address}: {error}"
            raise ConfigError(message) from error
        if self._doing:
            await asyncio.wait(self._doing)
        self._changed = changed
        self._do(self._watch())

    async def _open(self) -> None:
        from distributed import Client

        make: Any = Client
        client = make(
            self._address,
            asynchronous=True,
            set_as_default=False,
            name="rota-worker",
            timeout=TIMEOUT,
        )
        try:
            await client
        except BaseException:
            await _left(client)
            raise
        client.subscribe_topic(self._topic, lambda event: self._hear(event[1]))
        self._client, self._stream = client, client.scheduler_comm

    @property
    def _connected(self) -> bool:
        """Whether the scheduler tells this client all it shall hear.

        The client finds a scheduler again that it has lost, and does not subscribe there.
        """
        client = self._client
        return client.status == "running" and client.scheduler_comm is self._stream

    async def _watch(self) -> None:
        """Look after the nodes, and the scheduler, which may come back."""
        told = False
        while True:
            await asyncio.sleep(LOOK)
            try:
                if not self._connected:
                    self._lose(list(self._nodes))
                    await _left(self._client)
                    await self._open()
                await self._look()
                told = False
            except Exception as error:  # noqa: BLE001 - whatever Dask says, it is looked for again
                self._lose(list(self._nodes))
                if not told:
                    logger.warning(
                        "the Dask scheduler at %s does not answer: %s", self._address, _said(error)
                    )
                told = True

    async def _look(self) -> None:
        """Which nodes there are."""
        known = (await asyncio.wait_for(self._client.scheduler.identity(), TIMEOUT))["workers"]
        there = {address: said for address, said in known.items() if said["status"] in HOLDS}
        for address in there.keys() - self._nodes.keys() - self._meeting:
            self._meeting.add(address)
            self._do(self._meet(address, there[address]))
        self._lose([address for address in self._nodes if address not in there])
        for address, each in self._nodes.items():
            takes = there[address]["status"] == TAKES
            if takes is not each.takes:
                each.takes = takes
                self._count()

    async def _meet(self, address: str, said: Mapping[str, Any]) -> None:
        """Let a new node say which process it is; a silent one keeps no other waiting."""
        client = self._client
        try:
            asked = client.run(node.this, workers=[address], on_error="return")
            found = (await asyncio.wait_for(asked, TIMEOUT)).get(address)
        except Exception as error:  # noqa: BLE001 - as above
            found = error
        if client is not self._client:
            self._meeting.discard(address)
        elif isinstance(found, str):
            self._meeting.discard(address)
            self._strange.discard(address)
            self._nodes[address] = Node(address, found, said)
            self._count()
        else:
            asyncio.get_running_loop().call_later(TIMEOUT, self._meeting.discard, address)
            if address not in self._strange:
                self._strange.add(address)
                logger.warning("the node %s cannot run handlers: %s", address, _said(found))

    def _lose(self, gone: list[str]) -> None:
        for address in gone:
            self._nodes.pop(address).lost.set_result(None)
        if gone:
            self._count()

    def _count(self) -> None:
        self.slots = sum(each.threads for each in self._nodes.values() if each.takes)
        self._changed()

    def _do(self, coroutine: Coroutine[Any, Any, None]) -> None:
        doing = asyncio.get_running_loop().create_task(coroutine)
        self._doing.add(doing)
        doing.add_done_callback(self._doing.discard)

    def has(self, needs: Mapping[str, Any]) -> bool:
        """Whether some node has these resources."""
        wanted = needs.get("resources", {})
        return any(each.suits(wanted, each.has) for each in self._nodes.values())

    def take(self, needs: Mapping[str, Any]) -> Slot | None:
        """A thread of the node that has most to spare."""
        if not self._connected:
            return None
        wanted = needs.get("resources", {})
        free = [
            each
            for each in self._nodes.values()
            if each.takes and each.free and each.suits(wanted, each.left)
        ]
        if not free:
            return None
        found = max(free, key=lambda each: each.free)
        found.free -= 1
        for name, amount in wanted.items():
            found.left[name] -= amount
        return Slot(found, wanted)

    def give(self, slot: Slot) -> None:
        """A thread is free again."""
        slot.of.free += 1
        for name, amount in slot.wanted.items():
            slot.of.left[name] += amount

    async def run(self, slot: Slot, bundle: bytes) -> bytes:
        """Run a bundle on its node, and nowhere else.

        Raises:
            NodeLost: It did not end.
        """
        future = self._client.submit(
            run,
            bundle,
            self._topic,
            key=f"rota-{uuid.uuid4().hex}",
            workers=[slot.of.address],
            allow_other_workers=False,
            resources=slot.wanted or None,
            retries=0,
            pure=False,
        )
        running = asyncio.ensure_future(_result(future))
        try:
            either: set[asyncio.Future[Any]] = {running, slot.of.lost}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                message = f"the node {slot.of.address} of the Dask cluster was lost during this job"
                raise NodeLost(message)
            return running.result()
        except node.Refused as error:
            if self._nodes.get(slot.of.address) is slot.of:
                self._lose([slot.of.address])
            message = f"the node {slot.of.address} of the Dask cluster is another process now"
            raise NodeLost(message) from error
        finally:
            if not running.done() or running.cancelled():
                running.cancel()
                with contextlib.suppress(Exception):
                    await future.cancel()

    def stop(self, slot: Slot, key: str, place: int) -> None:
        """Tell the node, beside its threads."""
        self._do(self._tell(slot.of.address, key, place))

    async def _tell(self, address: str, key: str, place: int) -> None:
        try:
            await self._client.run(node.stop, key, place, workers=[address], on_error="ignore")
        except Exception as error:  # noqa: BLE001 - as above
            logger.debug("a node could not be told to stop a job: %s", _said(error))

    async def close(self) -> None:
        """Leave the cluster."""
        for doing in self._doing:
            doing.cancel()
        if self._client is not None:
            await _left(self._client)


async def _left(client: Any) -> None:
    """Close a client, which may wait for a scheduler that does not answer."""
    with contextlib.suppress(OSError):
        await asyncio.wait_for(client.close(), ENDING)


async def _result(future: Any) -> bytes:
    """What the future of a bundle gives.

    Raises:
        NodeLost: Dask says that it was lost, or has failed.
        Refused: The node is not the one for which it was meant.
    """
    from distributed.client import FutureCancelledError

    try:
        given: bytes = await future.result()
    except FutureCancelledError as error:
        message = f"the Dask cluster gave this job up: {error}"
        raise NodeLost(message) from error
    except node.Refused:
        raise
    except Exception as error:
        message = f"the Dask cluster could not run this job: {_said(error)}"
        raise NodeLost(message) from error
    return given


def _said(error: object) -> str:
    """An error in words: some of Dask's have none of their own."""
    return f"{type(error).__name__}: {error}"


def _nothing() -> None:
    """Nobody waits for the nodes that are there from the beginning."""
