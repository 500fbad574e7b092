"""A worker behind a pooler that its URL does not name."""

from contextlib import closing

import pytest

from rota import Rota
from tests.fixtures.pooler import Pooler
from tests.fixtures.workers import WorkerProcess, drained
from tests.store.postgres.database import Database


@pytest.mark.both
@pytest.mark.parametrize("connections", [1, 3])
def test_a_pooler_that_the_url_does_not_name(postgres_url: str, connections: int) -> None:
    """It ends, also where everything went well for a while, and says what to add to the URL."""
    with Database(postgres_url), Pooler(postgres_url, connections) as pooler:
        worker = WorkerProcess(pooler.url, session_timeout=1)
        try:
            assert worker.ended() == 3
        finally:
            worker.__exit__()
    last = worker.said.splitlines()[-1]
    assert last.startswith("Error: ")
    assert "add pooler=transaction to the URL" in last
    assert "Traceback" not in worker.said


@pytest.mark.both
def test_a_pooler_that_the_url_names(postgres_url: str) -> None:
    """It works."""
    with Database(postgres_url), Pooler(postgres_url) as pooler:
        with closing(Rota(f"{pooler.url}&pooler=transaction")) as app:
            done: list[int] = []

            @app.task(name="note")
            def note(number: int) -> None:
                done.append(number)

            note.enqueue_many([number] for number in range(20))
            drained(app)
        assert sorted(done) == list(range(20))
