"""Databases that speak PostgreSQL's language and cannot carry the job log.

The log is in the order of transaction ids, and is read up to the oldest one that runs. That needs
one server that gives these ids, with LISTEN and NOTIFY, sequences, partitions and TRUNCATE. Amazon
RDS and Aurora, Cloud SQL, AlloyDB, Azure and Neon have one writer and are PostgreSQL in this
respect; those that spread a table over several servers are not. They are recognised by what they
say of themselves. A product that is not known here fails at the first migration, and nothing is
left.
"""

from rota.errors import ConfigError
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.statements import sql

SERVER = sql("schema/server")
DISTRIBUTED = sql("schema/distributed")

NO_LOG = "{product} cannot hold Rota's tables: {lacks}; use PostgreSQL itself, or a service with one writer"

COCKROACH = "CockroachDB", "it has no LISTEN and NOTIFY, and its advisory locks do nothing"
YUGABYTE = (
    "YugabyteDB",
    "each of its servers numbers transactions for itself, and it lacks the type xid8",
)
DSQL = "Aurora DSQL", "it has no partitions, no TRUNCATE, and no LISTEN and NOTIFY"
LIMITLESS = "Aurora Limitless", "each of its servers numbers transactions for itself"
SHARDED = (
    "PostgreSQL with citus.enable_schema_based_sharding",
    "it would place them on one of several servers; SET that setting to off for the role that migrates",
)


@operation(Begin.NOTHING)
def check_server() -> Steps[None]:
    """Refuse a server on which the log could not work.

    Raises:
        ConfigError: It is one of those that are known.
    """
    [(version, dsql, limitless, sharded)] = yield SERVER()
    for found, (product, lacks) in (
        (version.startswith("CockroachDB"), COCKROACH),
        ("-YB-" in version, YUGABYTE),
        (dsql, DSQL),
        (limitless, LIMITLESS),
        (sharded, SHARDED),
    ):
        if found:
            raise ConfigError(NO_LOG.format(product=product, lacks=lacks))


def check_local() -> Steps[None]:
    """Refuse tables that Citus has distributed.

    Raises:
        ConfigError: One of them is.
    """
    found = yield DISTRIBUTED()
    if found:
        message = (
            f"Citus has distributed {found[0][0]}: its rows come from several servers, each with transaction ids of its own, "
            f"so jobs would be missed; SELECT undistribute_table('{found[0][0]}') makes it local again"
        )
        raise ConfigError(message)
