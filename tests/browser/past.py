"""A made-up day of a queue, as workers would have written it down.

It is busier in daytime, and half an hour ago a mail server was away.
"""

import math
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing

DAY = 1440
"""Minutes."""

Minute = tuple[int, int, int, int, int, float | None]
"""Appended, claimed, completed, discarded, available, seconds that the next job has waited."""

WRITE = """
    INSERT INTO rota_history (queue, minute, span, appended, claimed, completed, discarded, available, oldest,
                              total_appended, total_claimed, total_completed, total_discarded)
    VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0) ON CONFLICT DO NOTHING
"""


def write_day(file: str, shares: dict[str, float]) -> None:
    """Write it for each of these queues, as large as its share, up to the last minute but one."""
    last = int(time.time()) // 60 - 2
    rows = [
        (queue, last - DAY + 1 + at, *minute)
        for queue, share in shares.items()
        for at, minute in enumerate(_minutes(share))
    ]
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executemany(WRITE, rows)


def _minutes(share: float) -> Iterator[Minute]:
    chance = random.Random(7)
    waiting = 0
    for at in range(DAY):
        left = DAY - at
        came = round(share * (60 + 40 * math.sin(at / 230)) * chance.uniform(0.8, 1.2))
        away = 22 <= left < 38
        able = round(share * (15 if away else 140))
        claimed = min(waiting + came, able)
        failed = round(share * chance.choice((0, 0, 0, 1, 5 if away else 0)))
        waiting += came - claimed
        oldest = 60.0 * waiting / max(able, 1) if waiting else None
        yield came, claimed, claimed - min(failed, claimed), min(failed, claimed), waiting, oldest
