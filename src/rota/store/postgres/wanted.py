"""Jobs with keys that an enqueue wants stored, and what became of them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import NamedTuple

import msgspec

from rota.model.enqueued import Placing
from rota.model.job import JobId
from rota.store.postgres.statements import CHUNK


class Wanted(NamedTuple):
    """Jobs to be stored, in columns; of several with one key, the one that counts.

    `keys` are their unique keys; `None` where they have none.
    """

    jobs: Sequence[JobId]
    keys: Sequence[str] | None
    lanes: Sequence[int]
    args: Sequence[str]

    @property
    def unique_keys(self) -> Sequence[str]:
        """Their unique keys, if they have some."""
        return self.keys or ()

    def only(self, wanted: Sequence[bool]) -> "Wanted":
        """Those for which this says so."""
        return Wanted(
            list(compress(self.jobs, wanted)),
            None if self.keys is None else list(compress(self.keys, wanted)),
            list(compress(self.lanes, wanted)),
            list(compress(self.args, wanted)),
        )

    def by_key(self) -> "Wanted":
        """The same in the order of their keys, in which all producers go, so that none deadlock."""
        if self.keys is None:
            return self
        places = sorted(range(len(self.keys)), key=self.keys.__getitem__)
        return Wanted(
            [self.jobs[place] for place in places],
            [self.keys[place] for place in places],
            [self.lanes[place] for place in places],
            [self.args[place] for place in places],
        )

    def chunks(self) -> "Iterator[Wanted]":
        """As many as a statement stores, and so on."""
        for start in range(0, len(self.jobs), CHUNK):
            part = slice(start, start + CHUNK)
            keys = None if self.keys is None else self.keys[part]
            yield Wanted(self.jobs[part], keys, self.lanes[part], self.args[part])


class Found:
    """Which job has which key, and what was done for it."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobId] = {}
        self.placings: dict[str, Placing] = {}

    def add(self, keys: Sequence[str], jobs: Iterable[JobId], placing: Placing) -> None:
        """The same was done for all of these keys."""
        self.jobs.update(zip(keys, jobs, strict=True))
        self.placings.update(dict.fromkeys(keys, placing))

    def others(self, wanted: Wanted) -> Wanted:
        """Those of whose key nothing is known yet."""
        known = self.jobs
        return wanted.only([key not in known for key in wanted.unique_keys]) if known else wanted


def json_keys(wanted: Wanted) -> str:
    """Their unique keys as a JSON list: the driver would spend longer on an array."""
    return msgspec.json.encode(wanted.keys).decode()


def numbers(values: Sequence[int]) -> str:
    """An array of numbers in PostgreSQL's text format."""
    return f"{{{','.join(map(str, values))}}}"
