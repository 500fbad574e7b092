"""How long a worker keeps what it has run: by queue, and by state."""

from rota import Discard, Rota
from rota.events import JobSettled
from rota.model.states import Move
from tests.fixtures.workers import drained, until, working


def kept(app: Rota) -> dict[tuple[str, Move], float | None]:
    """Listen to how long jobs of each queue and end are kept."""
    found: dict[tuple[str, Move], float | None] = {}

    @app.on(JobSettled)
    def _(event: JobSettled) -> None:
        found[event.job.queue, event.settlement.move] = event.settlement.keep

    return found


def tasks(app: Rota) -> None:
    """One that ends well, and one that does not."""

    @app.task(name="well")
    async def well() -> None: ...

    @app.task(name="badly")
    async def badly() -> None:
        raise Discard("why")

    @app.task(name="own", retention=7)
    async def own(*, good: bool) -> None:
        if not good:
            raise Discard("why")


def test_by_queue_and_state(store_url: str, app: Rota) -> None:
    """The task, the database, the declaration, the app: the first who says it, for each state."""
    with Rota(store_url, retention=100) as shop:
        tasks(shop)
        shop.queue("mail", retention={"completed": 10, "discarded": 20})
        shop.queue("paint", retention=30)
        app.database.run(app.database.store.set_queue("paint", {"discarded": 40}))
        app.database.run(app.database.store.set_queue("mail", {"discarded": 50}))
        found = kept(shop)
        for queue in ("default", "mail", "paint"):
            for name in ("well", "badly"):
                shop.tasks[name].using(queue=queue).enqueue()
        drained(shop, queues=("default", "mail", "paint"))
        assert found == {
            ("default", Move.COMPLETE): 100,
            ("default", Move.DISCARD): None,
            ("mail", Move.COMPLETE): 10,
            ("mail", Move.DISCARD): 50,
            ("paint", Move.COMPLETE): 30,
            ("paint", Move.DISCARD): 40,
        }
        found.clear()
        shop.tasks["own"].using(queue="mail").enqueue(good=True)
        shop.tasks["own"].using(queue="mail").enqueue(good=False)
        drained(shop, queues=("mail",))
        assert found == {("mail", Move.COMPLETE): 7, ("mail", Move.DISCARD): 50}


def test_a_retention_changes_under_way(app: Rota) -> None:
    """Jobs that end after a worker has heard of it stay as long as is said then."""
    tasks(app)
    found = kept(app)
    with working(app, session_timeout=1.0):
        app.tasks["badly"].enqueue()
        until(lambda: found)
        assert found == {("default", Move.DISCARD): None}
        app.database.run(app.database.store.set_queue("default", {"discarded": 5}))
        until(lambda: app.queues.discarded() == {"default": 5})
        app.tasks["badly"].enqueue()
        until(lambda: found == {("default", Move.DISCARD): 5})


def test_what_is_kept_is_told_to_rescues(app: Rota) -> None:
    """For ever is what a rescue does by itself, so it is not told of that."""
    app.queue("mail", retention={"discarded": 5, "completed": 1})
    app.queue("paint", retention=3)
    app.queue("ever", retention={"discarded": float("inf")})
    assert app.queues.discarded() == {"mail": 5}
