"""The health endpoint, with healths made here."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from typing import Any

import pytest

from rota.errors import ConfigError
from rota.model.job import SessionId
from rota.service import endpoint
from rota.service.endpoint import Address, Endpoint
from rota.worker.health import Health, Phase

WELL = Health(Phase.RUNNING, SessionId(7), 2)
AWAY = Health(Phase.RUNNING, trouble={"session": "StoreUnavailable"})
DEAD = Health(Phase.RUNNING, SessionId(7), ended=("claimer",))


@contextmanager
def open_endpoint(*healths: Health, host: str = "127.0.0.1") -> Iterator[Address]:
    """An endpoint that tells of these, one after another; the last one for ever."""
    left = list(healths)

    def look() -> Health:
        return left.pop(0) if len(left) > 1 else left[0]

    with Endpoint(Address(host, 0), look) as opened:
        yield opened.address


def asked(address: Address, path: str, method: str = "GET") -> tuple[int, Any]:
    """The status and the document of an answer."""
    connection = HTTPConnection(*address, timeout=20)
    connection.request(method, path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, json.loads(body) if body else None


@pytest.mark.parametrize(
    ("health", "live", "ready", "why"),
    [
        (WELL, 200, 200, []),
        (AWAY, 200, 503, ["it holds no session: StoreUnavailable, see the log"]),
        (DEAD, 503, 503, ["the thread 'claimer' has ended"]),
        (Health(Phase.STARTING), 200, 503, ["it is starting"]),
    ],
)
def test_statuses(health: Health, live: int, ready: int, why: list[str]) -> None:
    """The status is for machines, and the document says why."""
    with open_endpoint(health) as address:
        assert asked(address, "/live")[0] == live
        status, document = asked(address, "/ready?verbose")
    assert status == ready
    assert document["why"] == why
    assert document.keys() == {"live", "ready", "phase", "session", "running", "why"}


def test_what_is_not_there() -> None:
    """Another path, and another method, have their own statuses; HEAD has no body."""
    with open_endpoint(WELL) as address:
        assert asked(address, "/") == (404, {"error": "ask for /live or /ready"})
        assert asked(address, "/live", "POST")[0] == 405
        assert asked(address, "/live", "HEAD") == (200, None)


@pytest.mark.parametrize("sent", [b"", b"GET /live HTTP/1.1\r\n", b"x" * 20000, b"\r\n\r\n"])
def test_slow_and_strange_clients(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """However many clients say nothing, or nonsense, the next one gets its answer."""
    monkeypatch.setattr(endpoint, "CLIENTS", 5)
    with open_endpoint(WELL) as address, ExitStack() as stack:
        for _ in range(20):
            client = stack.enter_context(socket.create_connection(address))
            client.sendall(sent)
        assert asked(address, "/ready")[0] == 200


def test_a_client_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not finish its request is hung up on, even if it goes on sending."""
    monkeypatch.setattr(endpoint, "PATIENCE", 0.2)
    with open_endpoint(WELL) as address, socket.create_connection(address, timeout=20) as client:
        hung_up = False
        client.settimeout(0.02)
        for _ in range(1000):
            try:
                client.sendall(b"X")
                hung_up = client.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                hung_up = True
            if hung_up:
                break
        assert hung_up


def test_the_clients_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are too many clients, the oldest one makes room."""
    monkeypatch.setattr(endpoint, "CLIENTS", 2)
    monkeypatch.setattr(endpoint, "PATIENCE", 300)
    with open_endpoint(WELL) as address, ExitStack() as stack:
        first, *_ = [
            stack.enter_context(socket.create_connection(address, timeout=20)) for _ in range(3)
        ]
        # It may learn of that by a reset.
        with suppress(ConnectionResetError):
            assert first.recv(1) == b""


def test_ipv6() -> None:
    """An address of IPv6 is as good."""
    try:
        with open_endpoint(WELL, host="::1") as address:
            assert asked(address, "/ready")[0] == 200
            assert str(address).startswith("[::1]:")
    except ConfigError as error:
        pytest.skip(f"no IPv6 here: {error}")


def test_an_address_that_is_taken() -> None:
    """An address that cannot be listened on is named."""
    with (
        open_endpoint(WELL) as address,
        pytest.raises(ConfigError, match=rf"cannot listen on {address}: .*in use"),
    ):
        Endpoint(address, lambda: WELL)
    with pytest.raises(ConfigError, match=r"cannot listen on nowhere\.invalid:1"):
        Endpoint(Address("nowhere.invalid", 1), lambda: WELL)
