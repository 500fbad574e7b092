"""This backend's statements: `sql("claim/claim")` is `sql/claim/claim.sql`."""

from functools import partial

from rota.store.operation import statement

sql = partial(statement, "rota.store.postgres")

CHUNK = 20_000
"""Jobs per statement, so that memory on both sides stays bounded."""
