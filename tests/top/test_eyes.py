"""Looking at several databases as one."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from rota.model.states import State
from rota.store.migrate import migrate
from rota.store.opening import open_store
from rota.store.protocol import Store
from rota.top.eyes import Eyes, together
from rota.top.history import History
from rota.top.looker import Eye, Looker, Lost, Pause, Paused
from rota.top.queues import queue_rows, sums
from rota.top.snapshot import Snapshot
from tests.store.factories import enqueue
from tests.top.made import holder, horizon, lane, queue, snapshot, worker
from tests.top.test_looker import Told

AWAY = "postgresql://nobody@127.0.0.1:1/nothing"


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[dict[str, Store]]:
    """Two files: `eu` has one job of the queue `mail`, `us` two."""
    with ExitStack() as stack:
        found = {}
        for name, jobs in (("eu", 1), ("us", 2)):
            store = stack.enter_context(closing(open_store(f"sqlite:///{tmp_path}/{name}.db")))
            with closing(store.connect()) as connection:
                migrate(store, connection)
                enqueue(store, connection, jobs, queue="mail")
            found[name] = store
        yield found


def available(seen: Snapshot | Lost) -> dict[str, int]:
    """How many jobs wait in each queue."""
    assert isinstance(seen, Snapshot)
    return {row.name: row.counts[State.AVAILABLE] for row in queue_rows(seen, History())}


def test_all_at_once(stores: dict[str, Store]) -> None:
    """The queues of each shard have its name first, and add up like those of one database."""
    eyes = Eyes(stores)
    seen = eyes.look()
    assert available(seen) == {"eu/mail": 1, "us/mail": 2}
    assert isinstance(seen, Snapshot)
    assert sums(queue_rows(seen, History())).counts[State.AVAILABLE] == 3
    assert seen.lost == ""
    eyes.close()


def test_pausing(stores: dict[str, Store]) -> None:
    """A queue is paused on its own shard alone."""
    looker, told = Looker(Eyes(stores), 1000.0), Told()
    looker.start(told.tell)
    told.next(Snapshot)
    looker.pause("us/mail", paused=True)
    assert told.next(Paused) == Paused("us/mail", paused=True, changed=True)
    assert {one.name: one.paused for one in told.next(Snapshot).queues} == {
        "eu/mail": False,
        "us/mail": True,
    }
    looker.stop()


def test_one_is_away(stores: dict[str, Store]) -> None:
    """It is named, and the others are seen; where all are away, nothing is."""
    with closing(open_store(AWAY)) as away:
        eyes = Eyes({"us": stores["us"], "away": away})
        seen = eyes.look()
        assert available(seen) == {"us/mail": 2}
        assert isinstance(seen, Snapshot)
        assert seen.lost.startswith("away is away: ")
        assert eyes.pause(Pause("away/mail", paused=True)).failure
        assert isinstance(Eyes({"away": away}).look(), Lost)


def test_one_does_not_answer(stores: dict[str, Store], monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps the look waiting for a moment only, and is seen again once it answers."""
    go = threading.Event()
    look = Eye.look

    def stopped(eye: Eye) -> Snapshot | Lost:
        if eye._store is stores["eu"]:
            go.wait(30)
        return look(eye)

    monkeypatch.setattr(Eye, "look", stopped)
    eyes = Eyes(stores, patience=0.2)
    seen = eyes.look()
    assert available(seen) == {"us/mail": 2}
    assert isinstance(seen, Snapshot)
    assert "eu is away: no answer for" in seen.lost
    go.set()
    while "eu/mail" not in available(eyes.look()):
        pass
    eyes.close()


def test_workers_of_several() -> None:
    """A worker with a session on each shard is one; its queues are its shards', patterns too."""
    everywhere = worker(id=1, queues=("*",), leased=2, silent=3.0)
    seen = together(
        {
            "eu": snapshot(queue("mail"), workers=(everywhere,), lanes=(lane("mail", 9.0),)),
            "us": snapshot(
                queue("mail"),
                workers=(replace(everywhere, leased=5, silent=1.0), worker(worker="other:1")),
                lanes=(lane("mail", 5.0),),
            ),
            "asia": snapshot(queue("mail"), lanes=(lane("mail", 5.0),)),
        }
    )
    one, other = seen.workers
    assert (one.queues, one.leased, one.silent) == (("eu/*", "us/*"), 7, 3.0)
    assert (other.worker, other.queues) == ("other:1", ("us/default", "us/mail"))
    assert one.id != other.id
    rows = queue_rows(seen, History())
    assert {row.name: row.waits_in_vain for row in rows} == {
        "eu/mail": False,
        "us/mail": False,
        "asia/mail": True,
    }


def test_horizons() -> None:
    """The holder of an old snapshot is named with its shard; of files the largest log counts."""
    held = together({"eu": snapshot(horizon=horizon(holder())), "us": snapshot()})
    assert held.horizon.holders[0].name == "psql on eu"
    files = {
        "eu": snapshot(horizon=horizon(log_size=5)),
        "us": snapshot(horizon=horizon(log_size=7)),
    }
    assert together(files).horizon.log_size == 7
    assert together(files | {"pg": snapshot()}).horizon.log_size is None
