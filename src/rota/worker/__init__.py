"""Running jobs: `Worker` puts together a session, a claimer, runners and a settler.

    claimer ──▶ inbox ──▶ runners ──▶ calls (loop, threads, processes) ──▶ settler
       ▲    └─▶ batches ──▶  ▲                                               │
    session (signs of life, requests to cancel)                          the store
       upkeep (stage, rescue, tidy)
       effects (jobs that their handlers complete in a transaction)

The event loop is the handlers' own: everything that waits for the database has a thread. What the
threads say to each other is in `switchboard`.
"""

from rota.worker.worker import Worker

__all__ = ["Worker"]
