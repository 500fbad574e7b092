"""Suspects run apart from all other jobs, in small lots, and what has not begun is not blamed."""

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from rota import Limit, Rota, State
from tests.fixtures.workers import drained, records
from tests.store.factories import claim, open_session, rescued

if TYPE_CHECKING:
    from rota.model.job import JobId

pytestmark = pytest.mark.both

SHORT = 0.02
MANY = 24


def kill_a_worker_with(app: Rota, count: int) -> None:
    """All jobs were in the hands of a worker that died."""
    store = app.database.store
    with closing(store.connect()) as connection:
        session = open_session(store, connection, timeout=SHORT)
        assert len(claim(store, connection, session)) == count
        assert len(rescued(store, connection, session).available) == count


class Together:
    """Which jobs run at the same time."""

    def __init__(self) -> None:
        self.running: set[int] = set()
        self.beside: dict[int, set[int]] = {}
        self.most = 0

    async def run(self, number: int) -> None:
        """Run for a moment; each job that runs meanwhile is noted."""
        self.running.add(number)
        self.most = max(self.most, len(self.running))
        for other in self.running:
            self.beside.setdefault(other, set()).update(self.running)
        await asyncio.sleep(0.02)
        self.running.discard(number)


@pytest.fixture
def together() -> Together:
    """Nothing runs yet."""
    return Together()


def test_suspects_run_in_lots(app: Rota, together: Together) -> None:
    """An eighth of the suspects at a time, and no other job beside them; then all go on."""

    @app.task(name="work", max_attempts=1)
    async def work(number: int) -> None:
        await together.run(number)

    work.enqueue_many((number,) for number in range(MANY))
    kill_a_worker_with(app, MANY)
    work.enqueue_many((MANY + number,) for number in range(MANY))
    work.using(priority=-1).enqueue_many((2 * MANY + number,) for number in range(3))
    drained(app, concurrency=10)
    assert {job.state for job in records(app)} <= {State.COMPLETED}
    assert together.beside.keys() == set(range(2 * MANY + 3))
    for number in range(MANY):
        assert len(together.beside[number]) <= MANY // 8
        assert max(together.beside[number]) < MANY
    assert together.most == 10, "the others share the worker"


def test_suspects_of_a_limit_in_queues_with_a_concurrency(app: Rota, together: Together) -> None:
    """Limits hold among suspects, too."""
    app.queue("mail", concurrency=3)

    @app.task(name="work", queue="mail", limit=Limit("{key}", running=1))
    async def work(number: int, key: str) -> None:
        assert key == str(number % MANY)
        await together.run(number)

    work.enqueue_many((number, str(number)) for number in range(MANY))
    store = app.database.store
    with closing(store.connect()) as connection:
        session = open_session(store, connection, timeout=SHORT)
        assert len(claim(store, connection, session, queues=("mail",))) == MANY
        rescued(store, connection, session)
    work.enqueue_many((MANY + number, str(number)) for number in range(MANY))
    drained(app, queues=("mail",), concurrency=10)
    assert together.beside.keys() == set(range(2 * MANY))
    assert together.most == 3
    for number in range(MANY):
        assert max(together.beside[number]) < MANY


def test_batches_of_suspects(app: Rota) -> None:
    """A batch has no more suspects than a lot."""
    sizes: list[int] = []

    @app.task(name="work", batch=MANY, within=0.05)
    async def work(numbers: list[int]) -> None:
        sizes.append(len(numbers))

    ids: list[JobId] = list(work.enqueue_many((number,) for number in range(16)))
    kill_a_worker_with(app, len(ids))
    drained(app)
    assert sizes == [2] * 8
