"""Several databases seen as one: queues are named `eu/mail`, and one that is away hides no other.

A worker that serves several shards has a session on each; here it is one worker.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rota.store.health import HorizonFacts, SessionFacts
from rota.store.protocol import Store
from rota.top.aside import PATIENCE, Question, answers
from rota.top.looker import Eye, Lost, Pause, Paused
from rota.top.snapshot import Snapshot


class Eyes:
    """Looks at all shards at once.

    Args:
        stores: Of each shard, by name.
        patience: Seconds that one waits for a shard.
    """

    def __init__(self, stores: Mapping[str, Store], patience: float = PATIENCE) -> None:
        self._looks = {name: Eye(store) for name, store in stores.items()}
        # With connections of their own: a look may be waiting for an answer.
        self._pauses = {name: Eye(store) for name, store in stores.items()}
        self._questions = {name: Question(eye.look) for name, eye in self._looks.items()}
        self._patience = patience

    def look(self) -> Snapshot | Lost:
        """Look once; lost where no shard answers."""
        seen: dict[str, Snapshot] = {}
        lost: dict[str, str] = {}
        for name, answer in answers(self._questions, self._patience).items():
            match answer.value:
                case Snapshot() as snapshot:
                    seen[name] = snapshot
                case Lost(reason):
                    lost[name] = reason
                case None:
                    lost[name] = answer.failure
        said = "; ".join(f"{name} is away: {reason}" for name, reason in lost.items())
        return replace(together(seen), lost=said) if seen else Lost(said)

    def pause(self, request: Pause) -> Paused:
        """Pause a queue of a shard, or resume it."""
        shard, _, queue = request.queue.partition("/")
        eye = self._pauses[shard]
        question = Question(lambda: eye.pause(replace(request, queue=queue)))
        answer = answers({shard: question}, self._patience)[shard]
        if answer.value is not None:
            return replace(answer.value, queue=request.queue)
        failure = f"{answer.failure}; it is done once the shard answers"
        return Paused(request.queue, request.paused, changed=False, failure=failure)

    def close(self) -> None:
        """Close the connections of the shards that are not waited for."""
        for name, eye in self._looks.items():
            if self._questions[name].answered:
                eye.close()


def together(seen: Mapping[str, Snapshot]) -> Snapshot:
    """The looks at several shards as one."""
    newest = max(seen.values(), key=lambda snapshot: snapshot.moment)
    return Snapshot(
        at=newest.at,
        moment=newest.moment,
        took=max(snapshot.took for snapshot in seen.values()),
        product=", ".join(dict.fromkeys(snapshot.product for snapshot in seen.values())),
        queues=tuple(
            replace(queue, name=f"{shard}/{queue.name}")
            for shard, snapshot in seen.items()
            for queue in snapshot.queues
        ),
        lanes=tuple(
            replace(lane, queue=f"{shard}/{lane.queue}")
            for shard, snapshot in seen.items()
            for lane in snapshot.lanes
        ),
        workers=_workers(seen),
        horizon=_horizon(seen),
    )


def _workers(seen: Mapping[str, Snapshot]) -> tuple[SessionFacts, ...]:
    found: dict[tuple[str, int], list[SessionFacts]] = {}
    for shard, snapshot in seen.items():
        met: dict[str, int] = {}
        for worker in snapshot.workers:
            # Two of one name on one shard are two.
            number = met[worker.worker] = met.get(worker.worker, -1) + 1
            queues = tuple(f"{shard}/{queue}" for queue in worker.queues)
            found.setdefault((worker.worker, number), []).append(replace(worker, queues=queues))
    return tuple(_as_one(number, sessions) for number, sessions in enumerate(found.values()))


def _as_one(number: int, sessions: list[SessionFacts]) -> SessionFacts:
    """A worker of several shards, heard of as long ago as on the one that has waited longest."""
    quietest = max(sessions, key=lambda session: session.silent - session.timeout)
    leases = [session.oldest_lease for session in sessions if session.oldest_lease is not None]
    return replace(
        quietest,
        id=number,
        queues=tuple(queue for session in sessions for queue in session.queues),
        leased=sum(session.leased for session in sessions),
        oldest_lease=max(leases, default=None),
        open=max(session.open for session in sessions),
    )


def _horizon(seen: Mapping[str, Snapshot]) -> HorizonFacts:
    every = [snapshot.horizon for snapshot in seen.values()]
    return HorizonFacts(
        holders=tuple(
            replace(holder, name=f"{holder.name} on {shard}".strip())
            for shard, snapshot in seen.items()
            for holder in snapshot.horizon.holders
        ),
        hidden=sum(horizon.hidden for horizon in every),
        log_size=_largest(horizon.log_size for horizon in every),
    )


def _largest(sizes: Iterable[int | None]) -> int | None:
    """That of the largest file, where all are files."""
    known = list(sizes)
    return None if None in known else max(size for size in known if size is not None)
