"""A worker that stops for ever between sending and settling a batch, or freezes just before.

It is there to be killed.

    python halting.py DATABASE TARGET NAME MARKER BATCH [freeze]

TARGET is the name of a class of `rota.relay` and its arguments as JSON: ["RedisStream", {"url":
"…"}].
"""

import json
import os
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

    def __init__(self, target: Target, marker: Path, *, freezes: bool) -> None:
        self._target, self._marker, self._freezes = target, marker, freezes
        self.timeout = target.timeout

    def open(self, relay: str, unsettled: Unsettled) -> "Sender":
        """Open the target."""
        self._sender = self._target.open(relay, unsettled)
        return self

    def prepare(self) -> None:
        """Prepare as the target does."""
        self._sender.prepare()

    def send(self, messages: Sequence[Message]) -> Mapping[JobId, Exception]:
        """Send, say so, and wait for the end; or freeze once, say so afterwards, and send."""
        if self._freezes:
            self._freezes = False
            os.kill(os.getpid(), signal.SIGSTOP)
            self._marker.touch()
            return self._sender.send(messages)
        self._sender.send(messages)
        self._marker.touch()
        while True:
            signal.sigwait({signal.SIGUSR1})

    def close(self) -> None:
        """Let go what the target has."""
        self._sender.close()


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
    url, described, name, marker, batch, *freeze = sys.argv[1:]
    app = Rota(url)
    target = Halting(target_of(described), Path(marker), freezes=bool(freeze))
    app.relay(name, to=target, batch=int(batch))
    # On SQLite a successor waits for the rescue.
    Worker(app, WorkerConfig(session_timeout=1.0)).run()


if __name__ == "__main__":
    main()
