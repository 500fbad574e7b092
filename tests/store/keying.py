"""Jobs with a limit or a fair share, for the tests of the stores."""

from collections.abc import Sequence

from rota import Limit
from rota.model.job import ClaimedJob, JobId, Keys, Order
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import spec_of


def limited(
    store: Store,
    connection: Connection,
    keys: Sequence[str],
    limit: Limit | None = None,
    **options: object,
) -> list[JobId]:
    """One job for each key, whose args are the key; at most two of a key run if nothing is said."""
    spec = spec_of(limit=limit or Limit(key="{key}", running=2), **options)
    args = [f'"{key}"' for key in keys]
    placed = connection.run(store.enqueue(Order(spec, args, Keys(limit=keys)))).placed
    return [one.job for one in placed]


def fair(
    store: Store, connection: Connection, keys: Sequence[str], **options: object
) -> list[JobId]:
    """One job for each key, between whose values the queue is shared fairly."""
    args = [f'"{key}"' for key in keys]
    spec = spec_of(**options)
    placed = connection.run(store.enqueue(Order(spec, args, Keys(fair=keys)))).placed
    return [one.job for one in placed]


def keys_of(jobs: Sequence[ClaimedJob]) -> list[str]:
    """The keys of claimed jobs, in their order."""
    return [job.args.strip('"') for job in jobs]
