"""Jobs with keys that an enqueue wants stored, and what became of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from operator import itemgetter, not_
from typing import Any, NamedTuple

import msgspec

from rota.model.enqueued import Placing
from rota.model.job import JobId
from rota.store.postgres.statements import CHUNK


class Wanted(NamedTuple):
    """Jobs to be stored, in columns; of several with one key, the one that counts.

    `places` are those of the jobs among all that were given, from 0. `keys` are their unique keys;
    `None` where they have none.
    """

    places: Sequence[int]
    jobs: Sequence[JobId]
    keys: Sequence[str] | None
    lanes: Sequence[int]
    args: Sequence[str]

    @property
    def unique_keys(self) -> Sequence[str]:
        """Their unique keys, if they have some."""
        return self.keys or ()

    def having(self, keys: Iterable[str]) -> list[int]:
        """The places of those with these keys."""
        places = dict(zip(self.unique_keys, self.places, strict=True))
        return list(map(places.__getitem__, keys))

    def only(self, wanted: Sequence[object]) -> "Wanted":
        """Those for which this says so."""
        return self._columns(lambda column: list(compress(column, wanted)))

    def at(self, rows: Sequence[int]) -> "Wanted":
        """Those in these rows of the columns, which are counted from 0, in this order."""
        return self._columns(lambda column: list(map(column.__getitem__, rows)))

    def by_key(self) -> "Wanted":
        """The same in the order of their keys, in which all producers go, so that none deadlock."""
        if self.keys is None:
            return self
        return self.at(sorted(range(len(self.keys)), key=self.keys.__getitem__))

    def chunks(self) -> "Iterator[Wanted]":
        """As many as a statement stores, and so on."""
        for start in range(0, len(self.jobs), CHUNK):
            yield self._columns(itemgetter(slice(start, start + CHUNK)))

    def _columns(self, chosen: Callable[[Sequence[Any]], Sequence[Any]]) -> "Wanted":
        return Wanted(
            chosen(self.places),
            chosen(self.jobs),
            None if self.keys is None else chosen(self.keys),
            chosen(self.lanes),
            chosen(self.args),
        )


class Found:
    """What became of the jobs that were wanted, by their places: to look up their keys would cost more.

    Args:
        jobs: The jobs that are to be stored, one for each place.

    Attributes:
        jobs: The job that each place led to, as soon as that is known.
        placings: What was done for it.
        known: Whether that is known.
    """

    def __init__(self, jobs: Iterable[JobId]) -> None:
        self.jobs = list(jobs)
        self.placings = [Placing.CREATED] * len(self.jobs)
        self.known = [False] * len(self.jobs)

    def add(self, places: Iterable[int], jobs: Iterable[JobId], placing: Placing) -> None:
        """The same was done for all of these."""
        for place, job in zip(places, jobs, strict=True):
            self.jobs[place], self.placings[place], self.known[place] = job, placing, True

    def others(self, wanted: Wanted) -> Wanted:
        """Those of which nothing is known yet."""
        known = list(map(self.known.__getitem__, wanted.places))
        return wanted.only(list(map(not_, known))) if any(known) else wanted


def json_keys(wanted: Wanted) -> str:
    """Their unique keys as a JSON list: the driver would spend longer on an array."""
    return msgspec.json.encode(wanted.keys).decode()


def numbers(values: Sequence[int]) -> str:
    """An array of numbers in PostgreSQL's text format."""
    return f"{{{','.join(map(str, values))}}}"
