"""Private database servers for tests and measurements: started from binaries, gone with their owner.

Rota never starts a server for an application: it uses the database that is there. These servers
need no installation, no root and no service manager, and import nothing of Rota but its errors.

owner      the owner's side, the same for all servers
postgres, mariadb, redis   one server each
binaries   where the servers' programs are
addresses  URLs of a server's databases
watchdog   the process that runs a server and removes it
"""

from rota.measure.servers.mariadb import MariaDBServer
from rota.measure.servers.postgres import PostgresServer, find_binaries
from rota.measure.servers.redis import RedisServer

__all__ = ["MariaDBServer", "PostgresServer", "RedisServer", "find_binaries"]
