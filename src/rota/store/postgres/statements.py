"""This backend's statements: `sql("claim/claim")` is `sql/claim/claim.sql`."""

import re
from functools import partial

from rota.store.operation import Statement, statement
from rota.store.postgres.layout import LOG_SEGMENTS

sql = partial(statement, "rota.store.postgres")

CHUNK = 20_000
"""Jobs per statement, so that memory on both sides stays bounded."""


def for_light_work(name: str) -> tuple[Statement, ...]:
    """A statement that reads one log segment, for each segment; its file names the first `log_0`.

    In a generic plan all segments are opened whatever is read: to begin costs more than the work
    where there is little.
    """
    source = sql(name)

    def of(segment: int) -> Statement:
        def number(found: re.Match[str]) -> str:
            return str((int(found[0]) + segment) % LOG_SEGMENTS)

        return Statement(
            f"{source.name}_{segment}", re.sub(r"(?<=rota\.log_)\d", number, source.text)
        )

    return tuple(map(of, range(LOG_SEGMENTS)))
