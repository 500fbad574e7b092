"""Claiming from key lanes: limits that are exact, and fair shares.

One writer at a time makes limits exact: what runs is counted in the transaction that hands out
more. A lane gives nothing while its limit has no place, and costs one probe then. Of the lanes of
one priority, those that were served longest ago come first; each gives an equal share, first the
next job of every lane, then the second one. Idle lanes are not looked at, see `idle.py`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple

from rota.store.operation import Rows, Statement, Steps
from rota.store.sqlite.idle import lanes_in_use
from rota.store.sqlite.statements import json_list, numbers, sql

CLAIM_LANES = sql("claim/claim_lanes")
CLAIM_LANES_USED = Statement(
    "claim_lanes_used",
    CLAIM_LANES.text.replace(
        "rota_lane AS lane INDEXED BY rota_lane_order",
        "json_each(:lanes) AS used CROSS JOIN rota_lane AS lane ON lane.id = used.value",
    ),
)
CLAIM_LANES_NEXT = sql("claim/claim_lanes_next")
LANES_SERVED = sql("claim/lanes_served")
LIMITS_STARTED = sql("claim/limits_started")
LIMITS_FORGET = sql("claim/limits_forget")

LANES = 200
"""The most lanes of a queue that give jobs to one claim."""


class Candidate(NamedTuple):
    """A job of a lane that may start."""

    job: int
    queue: str
    lane: int
    limit: int
    rated: bool


class Found(NamedTuple):
    """What may start: jobs by priority, in their order; the places of their limits, and their keys."""

    jobs: dict[int, list[Candidate]]
    places: dict[int, int]
    keys: dict[int, str]

    def filled(self, taken: Sequence[Candidate]) -> dict[int, str]:
        """Which of the jobs that start take a limit's last place, and its key."""
        places = dict(self.places)
        filled = {}
        for candidate in taken:
            limit = candidate.limit
            if limit in places:
                places[limit] -= 1
                if not places[limit]:
                    filled[candidate.job] = self.keys[limit]
        return filled


class _Lane(NamedTuple):
    priority: int
    served: int
    id: int
    limit: int
    places: int | None
    seconds: float | None
    key: str | None
    queue: str


class _Room(NamedTuple):
    """How many jobs of each queue and of each limit may start."""

    queues: dict[str, int]
    limits: dict[int, int]

    def has(self, lane: _Lane) -> bool:
        return self.queues[lane.queue] > 0 and self.limits.get(lane.limit, 1) > 0

    def take(self, lane: _Lane) -> None:
        self.queues[lane.queue] -= 1
        if lane.limit in self.limits:
            self.limits[lane.limit] -= 1


def candidates(rooms: Mapping[str, int], size: int, tasks: str | None = None) -> Steps[Found]:
    """Up to `size` jobs of each priority that may start; `rooms` says how many of each queue.

    Of the lanes of single tasks only those of these `tasks`, a JSON array; `None`: of all.
    """
    used = yield from lanes_in_use()
    most = min(size, LANES)
    while True:
        found, cut = yield from _candidates(rooms, size, most, used, tasks)
        # A limit has a lane for each priority: the first lanes may share a place, and others have
        # more.
        if not cut or most == LANES or sum(map(len, found.jobs.values())) >= size:
            return found
        most = LANES


def _candidates(
    rooms: Mapping[str, int], size: int, most: int, used: str | None, tasks: str | None
) -> Steps[tuple[Found, bool]]:
    """Candidates of up to `most` lanes of each queue, and whether there may be further lanes."""
    lanes: dict[int, list[_Lane]] = {}
    places: dict[int, int] = {}
    keys: dict[int, str] = {}
    cut = False
    for queue in rooms:
        rows = yield from open_lanes(queue, most, used, tasks)
        cut = cut or len(rows) == most
        for row in rows:
            lane = _Lane._make((*row, queue))
            lanes.setdefault(lane.priority, []).append(lane)
            if lane.places is not None and lane.key is not None:
                places[lane.limit] = lane.places
                keys[lane.limit] = lane.key
    room = _Room(dict(rooms), dict(places))
    jobs: dict[int, list[Candidate]] = {}
    for priority, group in sorted(lanes.items()):
        jobs[priority], room = yield from _share(sorted(group), room, size)
        size -= len(jobs[priority])
        if size <= 0:
            break
    return Found(jobs, places, keys), cut


def open_lanes(queue: str, size: int, used: str | None, tasks: str | None) -> Steps[Rows]:
    """Up to `size` of a queue's lanes in use, or (`None`) all, that may give these tasks' jobs."""
    if used is None:
        return (yield CLAIM_LANES(queue=queue, size=size, tasks=tasks))
    return (yield CLAIM_LANES_USED(queue=queue, size=size, lanes=used, tasks=tasks))


def _share(lanes: Sequence[_Lane], room: _Room, size: int) -> Steps[tuple[list[Candidate], _Room]]:
    """Equal shares of the lanes of one priority, and the room that is left."""
    share = -(-size // len(lanes))
    while True:
        rows = yield CLAIM_LANES_NEXT(lanes=json_list([lane.id for lane in lanes]), size=share)
        queued = [numbers(found) for (found,) in rows]
        left = _Room(dict(room.queues), dict(room.limits))
        chosen = list(islice(_seated(lanes, queued, left), size))
        more = any(
            len(jobs) >= share and left.has(lane) for lane, jobs in zip(lanes, queued, strict=True)
        )
        if len(chosen) >= size or not more:
            return chosen, left
        # What some lanes leave of their share is for those that have more jobs.
        share *= 2


def _seated(
    lanes: Sequence[_Lane], queued: Sequence[Sequence[int]], room: _Room
) -> Iterator[Candidate]:
    """The next job of every lane, then the second one, …, as far as there is room."""
    for turn in zip_longest(*queued):
        for lane, job in zip(lanes, turn, strict=True):
            if job is not None and room.has(lane):
                room.take(lane)
                yield Candidate(job, lane.queue, lane.id, lane.limit, lane.seconds is not None)


def note(taken: Sequence[Candidate], lease: int) -> Steps[None]:
    """Write down which lanes a claim served, and what it started under a rate."""
    last = list(dict.fromkeys(candidate.lane for candidate in reversed(taken)))
    yield LANES_SERVED(lanes=json_list(last[::-1]), lease=lease)
    yield from started(Counter(candidate.limit for candidate in taken if candidate.rated))


def started(starts: Mapping[int, int]) -> Steps[None]:
    """Write down how many jobs of limits with a rate start now."""
    if starts:
        listed = json_list(list(starts.items()))
        yield LIMITS_FORGET(starts=listed)
        yield LIMITS_STARTED(starts=listed)
