"""What needs commits: a database of the test's own, and a real worker."""

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from rota import ConfigError, Rota, State
from rota.testing import Kit
from tests.testing.conftest import connect, stored


def test_a_database_of_its_own(app: Rota, kit_url: str) -> None:
    """In the block the app has a new database, with real commits and workers; then its own again."""

    @app.task(name="ship", store_result=True)
    def ship(order: int) -> int:
        return order + 1

    with Kit(app=app) as kit:
        for _ in range(2):
            with kit.committed() as committed:
                assert app.url == committed.url != kit_url
                handle = ship.enqueue(41)
                assert stored(committed.url) == 1
                committed.drain()
                assert handle.result(0) == 42
    assert app.url == kit_url
    assert stored(kit_url) == 0


@pytest.mark.asyncio
async def test_an_async_worker(app: Rota) -> None:
    """The worker may run on the test's event loop."""

    @app.task(name="ship", queue="ships")
    async def ship() -> None: ...

    with Kit(app=app).committed() as committed:
        handle = await ship.aenqueue()
        await committed.adrain("ships")
        assert await handle.astatus() is State.COMPLETED


def test_it_goes_after_a_failure(app: Rota, kit_url: str) -> None:
    """Nothing is left behind, and the app has its own database again."""
    with pytest.raises(ZeroDivisionError), Kit(app=app).committed() as committed:
        raise ZeroDivisionError
    assert app.url == kit_url
    if kit_url.startswith("postgres"):
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            connect(committed.url)
    else:
        assert not Path(committed.url.removeprefix("sqlite:///")).exists()


@pytest.mark.parametrize("kit_url", ["postgres"], indirect=True)
def test_a_template_with_tables_of_ones_own(app: Rota, kit_url: str) -> None:
    """A database of the caller's is copied; while it is in use that is refused."""
    with psycopg.connect(kit_url) as conn:
        name = conn.info.dbname
        conn.execute("CREATE TABLE note (text text)")
        conn.commit()
        with (
            pytest.raises(ConfigError, match="nothing may be connected"),
            Kit(app=app).committed(template=name),
        ):
            pass
    app.close()
    with (
        Kit(app=app).committed(template=name) as committed,
        closing(connect(committed.url)) as conn,
    ):
        assert conn.execute("SELECT count(*) FROM note").fetchone() == (0,)


def test_not_in_a_transaction(kit: Kit) -> None:
    """A kit whose app is in a test's transaction has no place for another database."""
    with pytest.raises(ConfigError, match="use no connection before"), kit.committed():
        pass
