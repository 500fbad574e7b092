"""Patterns: the queues of a worker may be named by `mail-*`, which means all whose names match.

`*` stands for any characters, `?` for one, `[ab]` for one of these. A pattern also means the queues
that come later, and the one that has the pattern itself as its name.
"""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase


def is_pattern(wanted: str) -> bool:
    """Whether this means all queues whose names match."""
    return any(character in wanted for character in "*?[")


def meaning(wanted: Collection[str], queue: str) -> str | None:
    """The name or else the first pattern among these that means this queue."""
    if queue in wanted:
        return queue
    return next((one for one in wanted if is_pattern(one) and fnmatchcase(queue, one)), None)


def meant(wanted: Sequence[str], queues: Iterable[str]) -> list[str]:
    """The queues that these names and patterns mean, in their order; of patterns those in `queues`."""
    known = list(queues)
    found: dict[str, None] = {}
    for one in wanted:
        if is_pattern(one):
            found |= dict.fromkeys(queue for queue in known if meaning((one,), queue))
        else:
            found[one] = None
    return list(found)


def strange(wanted: Iterable[str], queues: Collection[str]) -> dict[str, str | None]:
    """Those names and patterns that mean none of the queues, and the most similar name to each."""
    return {
        one: next(iter(get_close_matches(one, sorted(queues), n=1)), None)
        for one in wanted
        if not any(meaning((one,), queue) for queue in queues)
    }
