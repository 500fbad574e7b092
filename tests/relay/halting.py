"""A worker that stops for ever between sending a batch and settling it, to be killed there.

    python halting.py DATABASE TARGET NAME MARKER BATCH

TARGET is the name of a class of `rota.relay` and its arguments as JSON: ["RedisStream", {"url": "…"}].
"""

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import rota.relay
from rota import Rota, WorkerConfig
from rota.model.job import JobId
from rota.relay.message import Message
from rota.relay.target import Sender, Target, Unsettled
from rota.worker import Worker


class Halting:
    """A target behind which nothing happens any more once a batch was sent."""

    def __init__(self, target: Target, marker: Path) -> None:
        self._target, self._marker = target, marker
        self.timeout = target.timeout

    def open(self, relay: str, unsettled: Unsettled) -> "Sender":
        """Open the target."""
        self._sender = self._target.open(relay, unsettled)
        return self

    def prepare(self) -> None:
        """Prepare as the target does."""
        self._sender.prepare()

    def send(self, messages: Sequence[Message]) -> Mapping[JobId, Exception]:
        """Send, say so, and wait for the end."""
        self._sender.send(messages)
        self._marker.touch()
        while True:
            signal.sigwait({signal.SIGUSR1})

    def close(self) -> None:
        """Nothing is closed in order."""


def target_of(described: str) -> Any:
    """The target that the words on the command line mean."""
    kind, arguments = json.loads(described)
    if kind == "CeleryTasks":
        import celery

        shop = celery.Celery("shop", broker=arguments["broker"])
        return rota.relay.CeleryTasks(shop, queue=arguments["queue"])
    return getattr(rota.relay, kind)(**arguments)


def main() -> None:
    """Run the worker."""
    url, described, name, marker, batch = sys.argv[1:]
    app = Rota(url)
    app.relay(name, to=Halting(target_of(described), Path(marker)), batch=int(batch))
    # On SQLite a successor waits for the rescue.
    Worker(app, WorkerConfig(session_timeout=1.0)).run()


if __name__ == "__main__":
    main()
