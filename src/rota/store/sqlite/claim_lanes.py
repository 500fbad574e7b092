"""Claiming from the lanes of keys: limits that are exact, and fair shares.

One writer at a time makes limits exact: what runs is counted in the transaction that hands out more. A
lane gives nothing while its limit has no place, and costs one probe then. Of the lanes of one priority,
those that were served longest ago come first; each gives an equal share, first the next job of every
lane, then the second one.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple

import msgspec

from rota.store.operation import Steps
from rota.store.sqlite.statements import json_list, sql

CLAIM_LANES = sql("claim_lanes")
CLAIM_LANES_NEXT = sql("claim_lanes_next")
LANES_SERVED = sql("lanes_served")
LIMITS_STARTED = sql("limits_started")
LIMITS_FORGET = sql("limits_forget")

_ids = msgspec.json.Decoder(list[int]).decode

LANES = 200
"""So many lanes of a queue give jobs to one claim at the most."""


class Candidate(NamedTuple):
    """A job of a lane that may start; `filled` is its limit's key, if it takes the last place."""

    job: int
    lane: int
    limit: int
    rated: bool
    filled: str | None = None


class _Lane(NamedTuple):
    priority: int
    served: int
    id: int
    limit: int
    places: int | None
    seconds: float | None
    key: str | None


def candidates(queues: Sequence[str], size: int) -> Steps[dict[int, list[Candidate]]]:
    """Up to `size` jobs of each priority that may start, in the order in which they shall."""
    lanes: dict[int, list[_Lane]] = {}
    places: dict[int, int] = {}
    for queue in queues:
        for row in (yield CLAIM_LANES(queue=queue, size=min(size, LANES))):
            lane = _Lane(*row)
            lanes.setdefault(lane.priority, []).append(lane)
            if lane.places is not None:
                places[lane.limit] = lane.places
    found: dict[int, list[Candidate]] = {}
    for priority, group in sorted(lanes.items()):
        found[priority] = yield from _share(sorted(group), places, size)
        size -= len(found[priority])
        if size <= 0:
            break
    return found


def _share(lanes: Sequence[_Lane], places: dict[int, int], size: int) -> Steps[list[Candidate]]:
    """Equal shares of the lanes of one priority; counts their limits' places down."""
    share = -(-size // len(lanes))
    while True:
        rows = yield CLAIM_LANES_NEXT(lanes=json_list([lane.id for lane in lanes]), size=share)
        queued = [_ids(found) for (found,) in rows]
        left = dict(places)
        chosen = list(islice(_seated(lanes, queued, left), size))
        more = any(
            len(jobs) >= share and left.get(lane.limit, 1) > 0
            for lane, jobs in zip(lanes, queued, strict=True)
        )
        if len(chosen) >= size or not more:
            places.update(left)
            return chosen
        # What some lanes do not need of their share is for those that have more.
        share *= 2


def _seated(
    lanes: Sequence[_Lane], queued: Sequence[Sequence[int]], places: dict[int, int]
) -> Iterator[Candidate]:
    """The next job of every lane, then the second one, …, as far as there are places."""
    for turn in zip_longest(*queued):
        for lane, job in zip(lanes, turn, strict=True):
            if job is None or places.get(lane.limit, 1) < 1:
                continue
            filled = None
            if lane.limit in places:
                places[lane.limit] -= 1
                filled = None if places[lane.limit] else lane.key
            yield Candidate(job, lane.id, lane.limit, lane.seconds is not None, filled)


def note(taken: Sequence[Candidate], lease: int) -> Steps[None]:
    """Write down which lanes a claim served, and what it started under a rate."""
    last = list(dict.fromkeys(one.lane for one in reversed(taken)))
    yield LANES_SERVED(lanes=json_list(last[::-1]), lease=lease)
    starts = Counter(one.limit for one in taken if one.rated)
    if starts:
        listed = json_list(list(starts.items()))
        yield LIMITS_FORGET(starts=listed)
        yield LIMITS_STARTED(starts=listed)
