"""To which database a caller's connection leads: of several in one app, that one is meant."""

from collections.abc import Mapping
from functools import partial

from rota.database.adapters import Blocking
from rota.database.recognise import blocking_caller, caller
from rota.database.through_django import alias_of
from rota.database.transaction_block import connection_of, is_own
from rota.store.execute import in_thread
from rota.store.protocol import Store


def leading_to(conn: object, stores: Mapping[str, Store]) -> str | None:
    """The identity of the database to which `conn` leads; `None`: none of these stores is of its kind.

    Args:
        conn: A connection or session of the caller, or the block of a transaction of Rota's own.
        stores: One of each kind, by its name.

    Raises:
        ConfigError: It is async, or no connection that Rota knows how to use.
        StoreError: The database refuses.
    """
    found = blocking_caller(connection_of(conn))
    store = stores.get(found.backend)
    return None if store is None else found.run(store.identity())


async def aleading_to(conn: object, stores: Mapping[str, Store]) -> str | None:
    """`leading_to` for async code; `conn` may be async or not."""
    if is_own(conn):
        return await in_thread(leading_to, conn, stores)
    connection = connection_of(conn)
    if alias_of(connection) is not None:
        from asgiref.sync import sync_to_async

        # Where async code's connections of Django are.
        look = partial(leading_to, conn, stores)
        return await sync_to_async(look, thread_sensitive=True)()
    found = await caller(connection)
    store = stores.get(found.backend)
    if store is None:
        return None
    if isinstance(found, Blocking):
        return found.run(store.identity())
    return await found.run(store.identity())
