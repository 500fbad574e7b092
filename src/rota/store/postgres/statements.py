"""Reads this backend's statements: `sql("claim")` is `sql/claim.sql`."""

from functools import partial

from rota.store.operation import statement

sql = partial(statement, "rota.store.postgres")
