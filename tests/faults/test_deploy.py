"""Old and new code together on one database, both ways, and the way back."""

import re
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from rota.store.opening import open_store
from tests.faults.processes import until
from tests.faults.versions import Code, Shop, add_migration, code_here, code_of, shop_in
from tests.store.schema import contraction

pytestmark = pytest.mark.large

RELEASED = ["852b1270112bf0f9fae30f6a9797f9deacf9e7a6"]
"""Commits whose code works on the tables as they are now; each release adds its own."""

GRANTS = re.findall(
    r"^GRANT .* TO app;$",
    (Path(__file__).parents[2] / "docs" / "operate" / "tables.md").read_text("utf-8"),
    re.MULTILINE,
)

ADDED = {
    "sqlite": "-- Expands: tests.\nALTER TABLE rota_queue ADD COLUMN colour TEXT;",
    "postgres": "-- Expands: tests.\nALTER TABLE rota.log ADD COLUMN colour text;",
}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """An app without any code of Rota's yet."""
    with shop_in(tmp_path) as shop:
        yield shop


def named(shop: Shop, name: str, url: str, make: Callable[[Path], None]) -> Code:
    """Code in a folder of the app."""
    (shop.folder / name).mkdir()
    make(shop.folder / name)
    return Code(shop.folder, name, url)


def newer(store: str, sql: str) -> Callable[[Path], None]:
    """The code as it is, with one more migration."""

    def make(folder: Path) -> None:
        code_here(folder)
        add_migration(folder, store, sql)

    return make


def backend(url: str) -> str:
    """The name of a URL's store."""
    return "sqlite" if url.startswith("sqlite") else "postgres"


@pytest.fixture
def restricted(store_url: str) -> Iterator[Callable[[], str]]:
    """Makes a role with the rights that tables have now; its URL. SQLite has none."""
    if backend(store_url) == "sqlite":
        yield lambda: store_url
        return
    role = f"app_{secrets.token_hex(4)}"
    with psycopg.connect(store_url, autocommit=True) as raw:
        raw.execute(f"CREATE ROLE {role}")

        def grant() -> str:
            assert len(GRANTS) == 3
            for one in GRANTS:
                raw.execute(one.replace(" TO app;", f" TO {role}").encode())
            return f"{store_url}{'&' if '?' in store_url else '?'}options=-c%20role%3D{role}"

        yield grant
        raw.execute(f"DROP OWNED BY {role}")
        raw.execute(f"DROP ROLE {role}")


def deployed(shop: Shop, old: Code, new: Code, grant: Callable[[], str]) -> None:
    """A deploy: old processes at work, the migration, new ones beside them, deaths on both sides."""
    assert old.run("migrate").returncode == 0
    owner, old.url = old.url, grant()
    before = shop.producer(old)
    first, second = shop.worker(old, "first"), shop.worker(old, "second")
    shop.ran(shop.enqueue_all(before), by=old)
    early = new.run("worker", "app:rota", "--drain")
    assert early.returncode == 4
    assert "run `rota migrate`" in early.stderr

    # The migration, while a job runs, with the rights that old processes had before.
    lost = shop.enqueue(before, "held", "first")
    shop.held(lost, by=old)
    migrated = new.run("migrate")
    assert migrated.returncode == 0, migrated.stderr
    after = shop.producer(new)
    shop.ran(shop.enqueue_all(before, after, queue="second"), by=old)

    # Old workers go, one of them by force.
    shop.worker(new, "first")
    first.popen.kill()
    shop.held(lost, by=new)
    shop.go(lost)
    shop.ran({lost}, by=new)
    shop.ran(shop.enqueue_all(before, after), by=new)

    # A new worker goes by force, and an old one is there still.
    dying = shop.worker(new, "second")
    second.popen.send_signal(signal.SIGSTOP)
    lost = shop.enqueue(after, "held", "second")
    shop.held(lost, by=new)
    dying.popen.kill()
    second.popen.send_signal(signal.SIGCONT)
    shop.held(lost, by=old)
    shop.go(lost)
    shop.ran({lost}, by=old)

    # Both at once; what is asked of a worker that stops, it does.
    stopping = shop.worker(new, "second")
    jobs = set().union(*(shop.enqueue_all(before, after, queue="second") for _ in range(5)))
    second.popen.terminate()
    assert second.popen.wait(60) == 0, second.said
    jobs |= shop.enqueue_all(before, after, queue="second")
    check_everything(shop, jobs, new)
    assert stopping.popen.poll() is None
    old.url = owner


def check_everything(shop: Shop, jobs: set[int], code: Code) -> None:
    """All jobs ran once, limited ones one at a time, and the counts say so."""

    def ended() -> bool:
        with closing(open_store(code.url)) as store, closing(store.connect()) as connection:
            queues = connection.run(store.queues())
        return not any(
            n for queue in queues for state, n in queue.counts.items() if not state.finished
        )

    until(lambda: shop.noted("ran").keys() >= jobs and ended(), "all jobs to end", 60)
    ran = shop.noted("ran")
    assert [number for number, by in ran.items() if len(by) != 1] == []
    lines = [line.split() for line in (shop.folder / "ledger").read_text("ascii").splitlines()]
    limited = {number for what, number, _ in lines if what == "begin"}
    order = [(what, number) for what, number, _ in lines if number in limited]
    assert order[1::2] == [("ran", number) for _, number in order[::2]]


@pytest.mark.parametrize("commit", RELEASED)
def test_released_code_and_this(
    shop: Shop, store_url: str, restricted: Callable[[], str], commit: str
) -> None:
    """Processes of released code work on while this code migrates and comes in, and nothing is lost."""
    old = named(shop, "old", store_url, lambda folder: code_of(commit, folder))
    new = named(shop, "new", store_url, code_here)
    deployed(shop, old, new, restricted)


def test_this_code_and_the_next(shop: Shop, store_url: str, restricted: Callable[[], str]) -> None:
    """The same with this code and tables to which the next one adds; then this code comes back."""
    store = backend(store_url)
    old = named(shop, "old", store_url, code_here)
    new = named(shop, "new", store_url, newer(store, ADDED[store]))
    deployed(shop, old, new, restricted)
    back = shop.producer(old)
    assert old.run("migrate").returncode == 0
    shop.worker(old, "third")
    shop.ran(shop.enqueue_all(back, queue="third"), by=old)


def test_the_next_code_takes_something_away(shop: Shop, store_url: str) -> None:
    """Then this code does not begin, and says what to do."""
    store = backend(store_url)
    old = named(shop, "old", store_url, code_here)
    with closing(open_store(store_url)) as opened:
        needs = contraction(opened, max(opened.migrations()) + 1)
    new = named(shop, "new", store_url, newer(store, f"-- Contracts: tests.\n{needs}"))
    assert old.run("migrate").returncode == 0
    assert new.run("migrate").returncode == 0
    for words in (("worker", "app:rota"), ("migrate",)):
        refused = old.run(*words)
        assert refused.returncode == 4
        assert "upgrade Rota on this machine" in refused.stderr
    with pytest.raises(AssertionError, match="SchemaTooNew"):
        shop.enqueue_all(shop.producer(old))
    shop.worker(new, "first")
    shop.ran(shop.enqueue_all(shop.producer(new)), by=new)
