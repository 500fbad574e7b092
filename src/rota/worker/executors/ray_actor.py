"""A node of Ray's: an actor, which runs one bundle at a time. Imported on the cluster's machines."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import ray

from rota.worker.executors import node

BESIDE = "beside"
"""The actor's threads for what is asked of it while it runs a bundle."""

M = TypeVar("M", bound=Callable[..., Any])


def beside(method: M) -> M:
    """A method that does not wait for the bundle's end."""
    marked: M = ray.method(concurrency_group=BESIDE)(method)
    return marked


class Actor:
    """Runs bundles in a process of its own."""

    @beside
    def ready(self) -> bool:
        """Whether it is there."""
        return True

    def run(self, bundle: bytes) -> Iterator[tuple[bool, bytes]]:
        """Run a bundle in a thread; its reports as they come, and whether each is the last one.

        Raises:
            Exception: It could not be run.
        """
        reports = queue.SimpleQueue[tuple[bool, bytes] | Exception]()

        def tell(report: bytes) -> None:
            reports.put((False, report))

        def run() -> None:
            try:
                reports.put((True, node.run(bundle, tell)))
            except Exception as error:  # noqa: BLE001 - raised again where it is heard
                reports.put(error)

        threading.Thread(target=run, name="rota-bundle", daemon=True).start()
        last = False
        while not last:
            said = reports.get()
            if isinstance(said, Exception):
                raise said
            last, report = said
            yield last, report

    @beside
    def stop(self, key: str, place: int) -> None:
        """Have a job of the bundle stopped."""
        node.stop(key, place)
