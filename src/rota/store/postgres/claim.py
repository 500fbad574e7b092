"""Claiming: the cursor of a lane moves on, and what it passed is leased.

The model is in docs/how/engine.md. The cursor is `(xid, id, holes)`: every row of the lane at or
before `(xid, id)` has been handed out, except rows of the transactions in `holes`, which were still
running when the cursor passed them. Sequences and transaction ids are handed out in one order and
committed in another; without the holes a job whose transaction commits late would be lost.

A claim first probes without a lock which lanes have something, then takes them one after another,
each in a transaction and a round trip of its own, until it is full. A claim that a producer has
just woken, or that comes after a full one, goes to the lanes at once, if they are few. It probes if
it finds nothing there, and twice a second however much it finds: there may be a new lane, of jobs
that come before the others. Of many lanes a claim that is full leaves the rest to the next one, and
each worker begins somewhere else (`claim_round.py`): else all would meet at every lane.

Where all that is in the log is in one of its segments, and the cursor has no holes, the claim is a
simpler statement (`claim_light.sql`): in a trickle of jobs half of its cost is to begin.

The key lanes of one queue and priority (those of jobs with a limit or a fair share, and those of
tasks that some worker did not know) are claimed together, in `claim_lanes.py`. A lane with unique
jobs, a unique lane, has a statement of its own.

What can fail: a lane that was probed may be empty by the time it is locked; the claim then gets
less. A paused queue or a dead session gives nothing. An error at a later lane leaves leases that
the caller was not told of and has to `release`.

Known weakness: claims of one lane take turns. The turn is short (a few milliseconds for a thousand
jobs), which bounds one lane to some hundred thousand jobs a second.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from rota.model.job import ClaimedJob, SessionId
from rota.store.operation import (
    Apart,
    Begin,
    Operation,
    Rows,
    Stepped,
    Steps,
    Together,
    operation,
)
from rota.store.postgres.claim_lanes import KeyLaneClaims
from rota.store.postgres.claim_round import Part, Round
from rota.store.postgres.idle import in_use
from rota.store.postgres.sessions import lost
from rota.store.postgres.statements import for_light_work, sql

CLAIM_PROBE = sql("claim/claim_probe")
CLAIM_LOCK = sql("claim/claim_lock")
CLAIM_TRY_LOCK = sql("claim/claim_try_lock")
CLAIM = sql("claim/claim")

CLAIM_LIGHT = for_light_work("claim/claim_light")
CLAIM_KEYED = sql("claim/claim_keyed")
SESSION_ALIVE = sql("claim/session_alive")
LANE_QUEUES = sql("claim/lane_queues")
LANES_LEFT = sql("claim/lanes_left")


EMPTY = 0.1
"""Seconds for which a plain lane that gave nothing comes after its key lanes, or they after it."""


HEAVY = 1.0
"""Seconds for which claims do not try the statement for light work where there is other work."""


class Claims:
    """Claims jobs, and remembers the lanes that it last looked at, and which are unique lanes."""

    def __init__(self) -> None:
        self._round = Round()
        self._unique: set[int] = set()
        self._key_lanes = KeyLaneClaims()
        self._plain_first = False
        self._empty: dict[Part, float] = {}
        self._segment = 0
        self._heavy_until = 0.0
        self._queues: dict[int, str] = {}

    def claim(
        self,
        session: SessionId,
        queues: Sequence[str],
        limit: int,
        *,
        woken: bool = False,
        most: Mapping[str, int] | None = None,
        tasks: Collection[str] | None = None,
    ) -> Operation[list[ClaimedJob]]:
        """Lease up to `limit` available jobs; see `rota.store.protocol.Store.claim`."""
        known = None if tasks is None else list(tasks)
        steps = self._claim(session, queues, limit, woken=woken, most=most, tasks=known)
        return Stepped("claim", steps, Begin.NOTHING)

    def _claim(
        self,
        session: SessionId,
        queues: Sequence[str],
        limit: int,
        *,
        woken: bool,
        most: Mapping[str, int] | None,
        tasks: Sequence[str] | None,
    ) -> Steps[list[ClaimedJob]]:
        if limit < 1:
            return []
        jobs: list[ClaimedJob] = []
        now = time.monotonic()
        if woken and (known_parts := self._round.known(queues, now)):
            jobs = yield from self._take_all(session, known_parts, limit, most, tasks)
        if not jobs:
            [(parts,)] = yield Apart(probe(queues, tasks))
            if ready := self._round.begin(queues, parts, now):
                jobs = yield from self._take_all(session, ready, limit, most, tasks)
        return jobs

    def _take_all(
        self,
        session: SessionId,
        parts: Sequence[Part],
        limit: int,
        most: Mapping[str, int] | None,
        tasks: Sequence[str] | None,
    ) -> Steps[list[ClaimedJob]]:
        """Claim from these parts until `limit` jobs are leased; of a queue as `most` says.

        Raises:
            LeaseLost: The session is not alive any more.
        """
        if any(part.key_lanes for part in parts):
            # Of one priority, plain and key lanes take turns at coming first.
            self._plain_first = not self._plain_first
            parts = sorted(parts, key=self._order(time.monotonic()))
        if most and not self._queues.keys() >= {part.lane for part in parts}:
            # A lane never changes its queue, so this is asked once for each lane.
            [(self._queues,)] = yield Apart(lane_queues())
        jobs: list[ClaimedJob] = []
        room = dict(most or {})
        wait = True
        visit = self._round.visit(parts)
        for part in visit:
            queue = self._queues.get(part.lane, "") if most else ""
            size = min(limit - len(jobs), room.get(queue, limit))
            if size < 1:
                visit.pass_by()
                continue
            # Another claim holds the first lane for a moment only; further lanes are left to it.
            taken = yield from self.take_part(session, part, size, tasks, wait=wait)
            wait = False
            if not taken:
                # If the next probe finds the lane ready, that is another part.
                self._empty[part] = time.monotonic()
                visit.miss()
                if doubted := visit.doubted():
                    visit.keep(doubted, (yield from _left(doubted)))
            if taken is None:
                yield from _find_alive(session)
                continue
            jobs += taken
            if queue in room:
                room[queue] -= len(taken)
            if len(jobs) >= limit:
                visit.stay()
                break
        self._round.leave(visit)
        return jobs

    def take_part(
        self,
        session: SessionId,
        part: Part,
        limit: int,
        tasks: Sequence[str] | None,
        *,
        wait: bool = False,
    ) -> Steps[list[ClaimedJob] | None]:
        """Claim from one part; `None` where another claim is at it, unless it is to `wait`."""
        if part.key_lanes:
            keys = self._key_lanes.take(session, part.lane, limit, wait=wait, tasks=tasks)
            return (yield from keys)
        return (yield from self._take(session, part.lane, limit, wait=wait))

    def _order(self, now: float) -> Callable[[Part], tuple[int, bool, bool]]:
        """The order of a claim, where there are key lanes."""
        since = now - EMPTY
        empty = self._empty = {part: at for part, at in self._empty.items() if at > since}
        return lambda part: (part.priority, part in empty, part.key_lanes is self._plain_first)

    def _take(
        self, session: SessionId, lane: int, limit: int, *, wait: bool
    ) -> Steps[list[ClaimedJob] | None]:
        """Claim from one lane; `None` if it could not be locked."""
        heavy = time.monotonic() < self._heavy_until
        while True:
            unique = lane in self._unique
            light = None if heavy else self._segment
            claiming = take(session, lane, limit, wait=wait, unique=unique, light=light)
            [(answer,)] = yield Apart(claiming)
            if answer is None:
                return None
            if answer.segment is not None:
                heavy = True
                self._segment = answer.segment
                self._heavy_until = time.monotonic() + HEAVY
            elif answer.unique is not unique:
                # The statement for the other kind of lane has done nothing.
                (self._unique.add if answer.unique else self._unique.discard)(lane)
            elif not answer.passed:
                jobs: list[ClaimedJob] = answer.jobs
                return jobs


@operation(Begin.READING)
def probe(queues: Sequence[str], tasks: Sequence[str] | None = None) -> Steps[list[Part]]:
    """What there is to claim from in these queues, in the order of a claim."""
    parts = []
    for lane, ready, priority, keys_ready in (
        yield CLAIM_PROBE(queues=(yield from in_use(queues)), tasks=tasks)
    ):
        parts.append(Part(lane, priority, ready, key_lanes=False))
        if keys_ready is not None:
            parts.append(Part(lane, priority, keys_ready, key_lanes=True))
    return parts


def _left(lanes: Sequence[int]) -> Steps[set[int]]:
    left: set[int]
    [(left,)] = yield Apart(lanes_left(lanes))
    return left


@operation(Begin.READING)
def lanes_left(lanes: Sequence[int]) -> Steps[set[int]]:
    """Which of these have something to claim."""
    return {lane for (lane,) in (yield LANES_LEFT(lanes=list(lanes)))}


@operation(Begin.READING)
def lane_queues() -> Steps[dict[int, str]]:
    """Which lane belongs to which queue."""
    return dict((yield LANE_QUEUES()))


class Answer(NamedTuple):
    """What the claim of a lane gave.

    `unique` says whether it is a unique lane; `passed` that void entries were passed and nothing
    else, so that there may be more; `segment`, the log's current one, that the work is not light.
    """

    jobs: list[ClaimedJob]
    unique: bool
    passed: bool = False
    segment: int | None = None


def take(
    session: SessionId,
    lane: int,
    limit: int,
    *,
    wait: bool,
    unique: bool = False,
    light: int | None = None,
) -> Operation[Answer | None]:
    """Claim up to `limit` jobs of a lane; `None` if it could not be locked.

    Of a plain lane at little cost, where all that is in the log is in the segment `light`.
    """
    lock = CLAIM_LOCK if wait else CLAIM_TRY_LOCK
    claim = CLAIM_KEYED if unique else CLAIM if light is None else CLAIM_LIGHT[light]
    return Together(
        "take", (lock(lane=lane, session=session), claim(lane=lane, session=session, size=limit)),
        _answer_unique if unique else _answer,
    )  # fmt: skip


def _answer(found: Sequence[Rows]) -> Answer | None:
    locked, rows = found
    if not locked:
        return None
    [(queue, priority, unique, _)] = locked
    if rows and rows[0][0] is None:
        return Answer([], unique, segment=rows[0][1])
    # By place: names take twice as long.
    jobs = [
        ClaimedJob(
            job, lease, task, args, queue, priority, attempt, max_attempts, timeout, enqueued_at,
            suspects, headers,
        )
        for (
            job, lease, task, args, attempt, max_attempts, timeout, enqueued_at, suspects, headers,
        ) in rows
    ]  # fmt: skip
    return Answer(jobs, unique)


def _answer_unique(found: Sequence[Rows]) -> Answer | None:
    locked, rows = found
    if not locked:
        return None
    [(queue, priority, unique, _)] = locked
    if rows and rows[0][0] is None:
        return Answer([], unique, passed=True)
    jobs = [
        ClaimedJob(
            job, lease, task, args, queue, priority, attempt, max_attempts, timeout, enqueued_at,
            suspects, headers, key,
        )
        for (
            job, lease, task, args, attempt, max_attempts, timeout, enqueued_at, suspects, headers,
            key,
        ) in rows
    ]  # fmt: skip
    return Answer(jobs, unique)


def _find_alive(session: SessionId) -> Steps[None]:
    [(alive,)] = yield Apart(is_alive(session))
    if not alive:
        raise lost(session)


@operation(Begin.READING)
def is_alive(session: SessionId) -> Steps[bool]:
    """Whether the session was not declared dead."""
    return bool((yield SESSION_ALIVE(session=session)))
