"""Rendezvous hashing: which of several shards a key has, without a table.

Each shard draws a number for the key, and the highest has it. So a key moves only where a shard is
added that draws higher, or its own is removed. The numbers are those of BLAKE2, alike in every
process and every version.
"""

from collections.abc import Iterable
from hashlib import blake2b

DRAWN = 8
"""Bytes of a number."""


def chosen(key: str, shards: Iterable[str]) -> str:
    """The shard of a key among these, of which there is one at least; their order does not matter."""
    return max(shards, key=lambda shard: (_drawn(key, shard), shard))


def _drawn(key: str, shard: str) -> bytes:
    # The zero byte keeps ("a", "bc") and ("ab", "c") apart: no key can have one.
    return blake2b(f"{shard}\0{key}".encode(), digest_size=DRAWN).digest()
