"""An app with a relay to a Redis server, on both stores."""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import redis

from rota import Rota

if TYPE_CHECKING:
    from rota.store.protocol import Store


@pytest.fixture
def app(store: "Store", store_url: str) -> Iterator[Rota]:
    """An app on an empty database that is up to date."""
    del store  # it made the tables
    with Rota(store_url) as app:
        yield app


class Stream:
    """A stream of a Redis server.

    Attributes:
        key: Its key, of this test alone.
        client: A connection to the server.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.key = f"test.{uuid4().hex}"
        self.client = redis.Redis.from_url(url, decode_responses=True)

    def entries(self) -> list[dict[str, str]]:
        """What was appended, in its order."""
        found: Any = self.client.xrange(self.key)
        return [fields for _, fields in found]

    def ids(self) -> list[int]:
        """The ids of the messages, in their order."""
        return [int(entry["id"]) for entry in self.entries()]

    def payloads(self) -> list[Any]:
        """The payloads of the messages, in their order."""
        return [json.loads(entry["payload"]) for entry in self.entries()]


@pytest.fixture
def stream(redis_url: str) -> Iterator[Stream]:
    """A stream that no other test has."""
    stream = Stream(redis_url)
    yield stream
    keys: Any = stream.client.keys(f"*{stream.key}*")
    if keys:
        stream.client.delete(*keys)
    stream.client.close()


Entered = Callable[[], int]
