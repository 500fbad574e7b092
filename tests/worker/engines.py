"""An engine whose nodes are threads of the test's own process, and what tests do to it."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from rota import Rota, Task
from rota.app.shards import Shards
from rota.errors import ConfigError
from rota.model.settlement import NodeLost
from rota.worker.executors import node
from rota.worker.executors.bundle import Bundle
from rota.worker.executors.engine import Hear


def adopt(app: Rota | Shards, task: Task[..., Any, Any], **options: Any) -> Task[..., Any, Any]:
    """The same task of a cluster in another app."""
    executor = options.setdefault("executor", task.executor)
    if task.engine:
        options.setdefault(executor, task.engine)
    adopted: Task[..., Any, Any] = app.task(
        name=task.name, store_result=task.store_result, **options
    )(task.function)
    return adopted


class Place:
    """One of the slots."""

    node = None


class Here:
    """Runs bundles in threads. Made in the place of a cluster's engine; tests hold on to it.

    Attributes:
        bundles: How many jobs each bundle had.
        busy: How many bundles run, those included that are lost.
        owns: The resources of the nodes.
        left: Whether its worker has left it.
    """

    name = "test"

    def __init__(self, address: str) -> None:
        if address == "nowhere":
            raise ConfigError
        self.slots = 2
        self.bundles: list[int] = []
        self.busy = 0
        self._freezing = asyncio.Event()
        self._opened = asyncio.Event()
        self._opened.set()
        self.owns: set[str] = set()
        self.left = False
        self._taken = 0
        self._pool = ThreadPoolExecutor(8)
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()

    async def connect(self, hear: Hear, changed: Callable[[], None]) -> None:
        """Nothing is far."""
        self._hear, self.changed = hear, changed

    def has(self, needs: Mapping[str, Any]) -> bool:
        """Whether the test says so."""
        return self.slots > 0 and self.owns.issuperset(needs.get("resources", {}))

    def take(self, needs: Mapping[str, Any]) -> Place | None:
        """A free one."""
        if self._taken == self.slots or not self.has(needs):
            return None
        self._taken += 1
        return Place()

    def give(self, slot: Place) -> None:
        """Free again."""
        del slot
        self._taken -= 1

    async def run(self, slot: Place, bundle: bytes) -> bytes:
        """Run it in a thread, or lose it."""
        del slot
        freezing = asyncio.ensure_future(self._freezing.wait())
        self.bundles.append(len(msgspec.json.decode(bundle, type=Bundle).orders))

        def tell(report: bytes) -> None:
            self._loop.call_soon_threadsafe(self._hear, report)

        await self._opened.wait()
        running = asyncio.ensure_future(
            self._loop.run_in_executor(self._pool, self._run, bundle, tell)
        )
        either: set[asyncio.Future[Any]] = {running, freezing}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        freezing.cancel()
        if not running.done():
            raise NodeLost("the test says so")
        return running.result()

    def _run(self, bundle: bytes, tell: Callable[[bytes], object]) -> bytes:
        with self._lock:
            self.busy += 1
        try:
            return node.run(bundle, tell)
        finally:
            with self._lock:
                self.busy -= 1

    def stop(self, slot: Place, key: str, place: int) -> None:
        """Tell it."""
        del slot
        node.stop(key, place)

    def freeze(self) -> None:
        """All that runs is lost, and nothing that comes later; called in any thread."""

        def change() -> None:
            frozen, self._freezing = self._freezing, asyncio.Event()
            frozen.set()

        self._loop.call_soon_threadsafe(change)

    def hold(self) -> None:
        """Bundles do not begin until `let_go`; called in any thread."""
        self._loop.call_soon_threadsafe(self._opened.clear)

    def let_go(self) -> None:
        """Those that are held begin; called in any thread."""
        self._loop.call_soon_threadsafe(self._opened.set)

    def become(self, slots: int, *owns: str) -> None:
        """The cluster has so many slots from now on, and these resources; called in any thread."""

        def change() -> None:
            self.slots, self.owns = slots, set(owns)
            self.changed()

        self._loop.call_soon_threadsafe(change)

    async def close(self) -> None:
        """End the threads."""
        self.left = True
        self._pool.shutdown(wait=False)
