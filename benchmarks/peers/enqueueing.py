"""Enqueue, for a while: how many jobs a second?"""

from typing import Literal

from benchmarks.peers.field import Peer
from benchmarks.peers.once import NotOnce
from benchmarks.peers.places import place
from benchmarks.peers.processes import PATIENCE
from benchmarks.peers.samples import Figures
from benchmarks.peers.servers import Servers


def enqueue(
    peer: Peer, servers: Servers, seconds: float, *, how: Literal["one", "many"]
) -> tuple[str, Figures]:
    """Enqueue one by one, or many at a time; the version and the rate.

    Raises:
        NotOnce: The queue does not have as many jobs as were enqueued.
        DriverFailed: The driver failed.
    """
    with place(peer, servers) as at:
        said = at.driver.ask(how, str(seconds), limit=seconds + PATIENCE)
        enqueued = int(said["enqueued"])
        waiting = at.waiting() - 1  # the warm-up
        if waiting != enqueued:
            raise NotOnce(f"enqueued {enqueued} jobs, and has {waiting}")
        return at.driver.version, {
            "jobs": enqueued,
            "per_second": round(enqueued / said["seconds"]),
        }
