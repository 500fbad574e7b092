"""Running jobs: `Worker` puts together a session, a claimer, runners and a settler.

    claimer ──▶ inbox ──▶ runners ──▶ calls (loop, threads, processes) ──▶ settler
       ▲    └─▶ batches ──▶  ▲                                               │
    session (signs of life, requests to cancel)                          the store
       upkeep (stage, rescue, tidy)
       effects (jobs that their handlers complete in a transaction)

The event loop is the handlers' own: everything that waits for the database has a thread. What the
threads say to each other is in `switchboard`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.worker.worker import Worker

__all__ = ["Worker"]


def __getattr__(name: str) -> Any:
    # Child processes import modules of this package, and need neither the worker nor its event
    # loop.
    if name == "Worker":
        from rota.worker.worker import Worker

        return Worker
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
