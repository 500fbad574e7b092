"""The page that Prometheus reads, and a WSGI application that serves it at `/metrics`."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder

from rota.database.database import Database
from rota.errors import RotaError
from rota.metrics.families import families, of_shards
from rota.metrics.seen import Sight
from rota.top.aside import Question, answers

logger = logging.getLogger("rota")

PATH = "/metrics"


class Metrics:
    """The metrics of a database, or of several; also a WSGI application.

    Args:
        database: The database; of several, each with its shard's name.
        every: Seconds after which it is looked at again.
    """

    def __init__(self, database: Database | Mapping[str, Database], every: float = 1.0) -> None:
        self._look: Callable[[], Iterable[Metric]]
        if isinstance(database, Database):
            sight = Sight(database, every)
            self._look = lambda: families(sight.now())
        else:
            questions = {name: Question(Sight(each, every).now) for name, each in database.items()}
            self._look = lambda: of_shards(answers(questions))

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """The page in the form that is asked for, and its content type.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        write, kind = choose_encoder(accept)
        return write(_Collected(self._look())), kind

    def samples(self) -> list[dict[str, Any]]:
        """The same as plain data.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        return [
            {"name": sample.name, "labels": sample.labels, "value": sample.value}
            for family in self._look()
            for sample in family.samples
        ]

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        status, kind = "200 OK", "text/plain; charset=utf-8"
        if environ.get("PATH_INFO") != PATH:
            status, body = "404 Not Found", f"Ask for {PATH}.\n".encode()
        elif environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            status, body = "405 Method Not Allowed", b"Only GET and HEAD.\n"
        else:
            try:
                body, kind = self.text(environ.get("HTTP_ACCEPT", ""))
            except RotaError as error:
                # Who reads this need not know where the database is.
                logger.warning("metrics: %s", error)
                status, body = "503 Service Unavailable", f"{type(error).__name__}\n".encode()
        headers = [("content-type", kind), ("content-length", str(len(body)))]
        start(status, [*headers, ("cache-control", "no-store")])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


class _Collected:
    """What was seen, as a registry of the Prometheus client's is read."""

    def __init__(self, found: Iterable[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        """All metrics."""
        return self._found
