"""Private database servers, for tests and benchmarks: started from binaries, gone with their owner.

Rota never starts a server for an application: it uses the database that is there. What is here
needs no installation, no root and no service manager, and imports nothing of Rota but its errors.
"""

from rota.servers.postgres import PostgresServer, find_binaries

__all__ = ["PostgresServer", "find_binaries"]
