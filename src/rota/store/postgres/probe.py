"""Whether a notification comes back: poolers and proxies swallow LISTEN without an error."""

import secrets
import time
from collections.abc import Callable
from contextlib import closing

import psycopg

from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.connection import PostgresConnection
from rota.store.postgres.failures import translate
from rota.store.postgres.statements import sql

LISTEN = sql("health/probe_listen")
NOTIFY = sql("health/probe_notify")


def hears(connect: Callable[[], PostgresConnection], timeout: float) -> bool:
    """Listen on one connection, notify on another, and wait for up to `timeout` seconds.

    Raises:
        StoreUnavailable: The server cannot be reached.
    """
    payload = secrets.token_hex(8)
    deadline = time.monotonic() + timeout
    with closing(connect()) as listener, closing(connect()) as speaker:
        listener.run(_listen())
        speaker.run(_notify(payload))
        try:
            # One at a time: another doctor's probe is not the answer to this one.
            while (left := deadline - time.monotonic()) > 0:
                for notice in listener.raw().notifies(timeout=left, stop_after=1):
                    if notice.payload == payload:
                        return True
        except psycopg.Error as error:
            raise translate(error, listener.url) from error
    return False


@operation(Begin.NOTHING)
def _listen() -> Steps[None]:
    yield LISTEN()


@operation(Begin.NOTHING)
def _notify(payload: str) -> Steps[None]:
    yield NOTIFY(payload=payload)
