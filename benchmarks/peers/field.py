"""Which peers there are, each with the settings that its own documentation gives as best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from signal import Signals
from typing import Literal, TypeAlias

from rota.errors import ConfigError

Kind: TypeAlias = Literal["postgresql", "sqlite", "redis"]
Runtime: TypeAlias = Literal["rota", "python", "node"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One of the field.

    Attributes:
        name: For the command line.
        title: For people.
        driver: The file in `drivers/`, without its ending.
        runtime: What runs the driver: the environment of Rota, of the Python peers, or Node.js.
        kind: Its database.
        waiting: SQL that counts the jobs that are neither done nor given up; "" for Redis.
        pace: Jobs a second that one worker drains on a small machine, about: how large a backlog
            is.
        settings: What differs from its defaults, for the report.
        most_workers: How many workers can share a queue.
        ends_by: The signal on which a worker ends in good order.
    """

    name: str
    title: str
    driver: str
    runtime: Runtime
    kind: Kind
    waiting: str
    pace: int
    settings: str
    most_workers: int = 1000
    ends_by: Signals = Signals.SIGTERM


FIELD: Mapping[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            name="rota", title="Rota", driver="rota", runtime="rota", kind="postgresql",
            waiting="SELECT coalesce(sum(CASE state WHEN 'appended' THEN jobs ELSE -jobs END), 0)"
            " FROM rota.counter"
            " WHERE state IN ('appended', 'completed', 'discarded', 'cancelled') AND expires > now()",
            pace=80_000,
            settings="all by default; enqueue_many of 50,000",
        ),
        Peer(
            name="rota-sqlite", title="Rota on SQLite", driver="rota", runtime="rota", kind="sqlite",
            waiting="SELECT count(*) FROM rota_job"
                    " WHERE state NOT IN ('completed', 'discarded', 'cancelled')",
            pace=50_000,
            settings="all by default; enqueue_many of 50,000",
        ),
        Peer(
            name="procrastinate", title="Procrastinate", driver="procrastinate", runtime="python",
            kind="postgresql",
            waiting="SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
            pace=500,
            settings="concurrency 4 (best of 1, 4, 10, 20); batch_defer of 1,000",
        ),
        Peer(
            name="pgqueuer", title="PgQueuer", driver="pgqueuer", runtime="python",
            kind="postgresql",
            waiting="SELECT count(*) FROM pgqueuer",
            pace=6_000,
            settings="batch size 1,000 (best of 10, 100, 500, 1,000), uvloop; lists of 1,000",
        ),
        Peer(
            name="pgboss", title="pg-boss", driver="pgboss", runtime="node", kind="postgresql",
            waiting="SELECT count(*) FROM pgboss.job WHERE state < 'completed' AND name = 'record'",
            pace=10_000,
            settings="batches of 500, burstWhenBatchFull, LISTEN/NOTIFY, polling every 0.5 s;"
                     " insert of 1,000",
        ),
        Peer(
            name="graphile", title="Graphile Worker", driver="graphile", runtime="node",
            kind="postgresql",
            waiting="SELECT count(*) FROM graphile_worker._private_jobs",
            pace=25_000,
            settings="24 concurrent jobs, local queue of 500, batch delays 0; addJobs of 1,000",
        ),
        Peer(
            name="pgq", title="PgQ's loop", driver="pgq", runtime="python", kind="postgresql",
            waiting="SELECT pgq.seq_getval(queue_event_seq) - tick_event_seq FROM pgq.queue"
                    " JOIN pgq.subscription ON sub_queue = queue_id"
                    " JOIN pgq.tick ON tick_queue = queue_id AND tick_id = sub_last_tick",
            pace=80_000,
            settings="a tick every 10 ms; COPY of 5,000. A loop of our own, without a state of each"
                     " job: an upper bound, not a peer. Only one worker can read a queue",
            most_workers=1,
        ),
        Peer(
            name="celery", title="Celery + Redis", driver="celery", runtime="python", kind="redis",
            waiting="",
            pace=1_000,
            settings="prefork, 2 processes (1 each where there are several workers), prefetch 64, no"
                     " results, gossip, mingle, heartbeat; no call in bulk. Redis writes nothing to"
                     " a disk",
        ),
        Peer(
            name="huey", title="Huey on SQLite", driver="huey", runtime="python", kind="sqlite",
            waiting="SELECT count(*) FROM task",
            pace=2_000,
            settings="one thread, no results, write-ahead log, synchronous=FULL; no call in bulk",
            ends_by=Signals.SIGINT,
        ),
    )
}  # fmt: skip


def chosen(names: Sequence[str]) -> list[Peer]:
    """The peers of these names, in the field's order; all of them where none is named.

    Raises:
        ConfigError: A name is not in the field.
    """
    for name in names:
        if name not in FIELD:
            raise ConfigError(f"{name!r} is no peer: name some of {', '.join(FIELD)}")
    return [peer for name, peer in FIELD.items() if not names or name in names]
