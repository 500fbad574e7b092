"""`rota migrate`."""

from contextlib import closing
from pathlib import Path

from rota.store.migrate import scripts
from rota.store.opening import open_store
from tests.cli.calling import answer, refused, rota
from tests.store.schema import contraction, make_old


def newest(url: str) -> int:
    """The newest version."""
    return max(open_store(url).migrations())


def test_migrating_twice(store_url: str) -> None:
    """The first run makes the tables, the second says that they are up to date."""
    first = rota("migrate", url=store_url)
    assert first.exit_code == 0
    assert f"has Rota's tables now (version {newest(store_url)})" in first.stdout
    second = rota("migrate", url=store_url)
    assert second.exit_code == 0
    assert "is up to date" in second.stdout
    assert rota("jobs", "list", url=store_url).exit_code == 0


def test_json(store_url: str) -> None:
    """`--json` prints the versions before and after."""
    version = newest(store_url)
    first = answer("migrate", url=store_url)
    assert first.pop("url")
    assert first == {"from": 0, "version": version, "applied": [version]}
    second = answer("migrate", url=store_url)
    assert (second["from"], second["version"], second["applied"]) == (version, version, [])


def test_a_dry_run_changes_nothing(store_url: str, tmp_path: Path) -> None:
    """`--dry-run` prints the SQL, and makes neither tables nor a file."""
    result = rota("migrate", "--dry-run", url=store_url)
    assert result.exit_code == 0
    for sql in open_store(store_url).migrations().values():
        assert sql.strip() in result.stdout
    assert not list(tmp_path.iterdir())
    assert rota("jobs", "list", url=store_url).exit_code == 4


def test_a_dry_run_as_json(store_url: str) -> None:
    """With `--json` each migration is an object, and none is left once they ran."""
    shown = answer("migrate", "--dry-run", url=store_url)
    assert shown["version"] == 0
    assert {migration["version"]: migration["sql"] for migration in shown["pending"]} == scripts(
        open_store(store_url), 0
    )
    rota("migrate", url=store_url)
    assert answer("migrate", "--dry-run", url=store_url)["pending"] == []
    assert "-- " in rota("migrate", "--dry-run", url=store_url).stdout


def test_tables_of_an_older_version(store_url: str) -> None:
    """They go to the newest version step by step, and `--dry-run` shows these steps alone."""
    version = newest(store_url)
    with closing(open_store(store_url)) as store, closing(store.connect()) as connection:
        make_old(store, connection, version - 2)
        steps = scripts(store, version - 2)
    assert list(steps) == [version - 1, version]
    shown = answer("migrate", "--dry-run", url=store_url)
    assert shown["version"] == version - 2
    assert {one["version"]: one["sql"] for one in shown["pending"]} == steps
    lines = rota("migrate", "--dry-run", url=store_url).stdout
    for number, sql in steps.items():
        assert f"-- Migration to version {number}\n{sql.strip()}" in lines
    result = answer("migrate", url=store_url)
    assert (result["from"], result["version"], result["applied"]) == (
        version - 2,
        version,
        [*steps],
    )


def test_passwords_are_not_shown(postgres_url: str) -> None:
    """The password of a URL is not printed."""
    head, tail = postgres_url.split("://", 1)
    account, at, rest = tail.rpartition("@")
    url = f"{head}://{account.partition(':')[0] or 'postgres'}:hush{at or '@'}{rest}"
    assert "hush" not in rota("migrate", url=url).output


def test_tables_of_a_newer_version(store_url: str) -> None:
    """An older command leaves them as they are: nothing is to be done, or it says to upgrade."""
    rota("migrate", url=store_url)
    version = newest(store_url)
    with closing(open_store(store_url)) as store, closing(store.connect()) as connection:
        connection.run(store.migrate(998, contraction(store, version), after=version))
        result = rota("migrate", url=store_url)
        assert (result.exit_code, result.stderr) == (0, "")
        assert "is up to date (version 998)" in result.stdout
        given = answer("migrate", url=store_url)
        assert (given["from"], given["version"], given["applied"]) == (998, 998, [])
        assert answer("migrate", "--dry-run", url=store_url)["pending"] == []
        assert rota("queues", "list", url=store_url).exit_code == 0
        connection.run(store.migrate(999, contraction(store, version + 1), after=998))
    refused(rota("migrate", url=store_url), 4, f"knows version {version + 1}", "upgrade Rota")
