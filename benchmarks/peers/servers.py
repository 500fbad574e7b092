"""The servers that the peers need, and what is missing on this machine."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.field import Peer
from benchmarks.peers.processes import INSTALLED, MODULES, program
from rota.errors import ConfigError
from rota.measure.servers import PostgresServer, RedisServer, find_binaries
from rota.measure.servers.binaries import VARIABLE, find_program

SETTINGS = {"shared_buffers": "1GB", "max_connections": "1000"}

EXTENSIONS = Path("/usr/share/postgresql")
DEBIAN = Path("/usr/lib/postgresql")
"""Where Debian has the extensions and the programs of each version."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Those that run; `None` where no peer needs one."""

    postgres: PostgresServer | None
    redis: RedisServer | None


@contextlib.contextmanager
def started(peers: Sequence[Peer]) -> Iterator[Servers]:
    """The servers that some peers need, for as long as the block lasts.

    Raises:
        ConfigError: A server is not installed.
        StoreUnavailable: A server did not start.
    """
    kinds = {peer.kind for peer in peers}
    with contextlib.ExitStack() as stack:
        postgres = redis = None
        if "postgresql" in kinds:
            postgres = stack.enter_context(
                PostgresServer.start(binaries=binaries(), settings=SETTINGS)
            )
        if "redis" in kinds:
            redis = stack.enter_context(RedisServer.start())
        yield Servers(postgres, redis)


def binaries() -> Path:
    """PostgreSQL's programs: of the newest version that has PgQ, so that all run on the same one.

    Else, or where ROTA_TEST_POSTGRES_BIN names a folder, those that `find_binaries` finds.

    Raises:
        ConfigError: There are none.
    """
    with_pgq = _with_pgq()
    if with_pgq and not os.environ.get(VARIABLE):
        return with_pgq[-1]
    return find_binaries()


def missing(peer: Peer) -> str | None:
    """Why a peer cannot run on this machine, and how to change that."""
    try:
        if not Path(program(peer)[0]).exists() or (peer.runtime == "node" and not MODULES.exists()):
            return f"{INSTALLED[peer.runtime]} is not installed: `make peers` does that"
        if peer.kind == "redis":
            find_program("redis-server")
        elif peer.kind == "postgresql":
            found = binaries()
            if peer.name == "pgq" and found not in _with_pgq():
                return (
                    "the extension pgq is not installed for PostgreSQL in"
                    f" {found}: `make peers-servers` installs it on Debian"
                )
    except ConfigError as error:
        return str(error)
    return None


def _with_pgq() -> list[Path]:
    """Folders of Debian's programs of the versions that have the extension, oldest first."""
    versions = [path.parent.parent.name for path in EXTENSIONS.glob("*/extension/pgq.control")]
    numbers = sorted(int(version) for version in versions if version.isdigit())
    return [DEBIAN / str(number) / "bin" for number in numbers]
