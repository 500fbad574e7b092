"""All queues, and one queue."""

from rota.dashboard import shown
from rota.dashboard.message import NotThere, Page
from rota.dashboard.pages import history
from rota.dashboard.routes import Call, fields
from rota.model.patterns import meaning
from rota.model.queue_settings import NOTHING, QueueSettings
from rota.store.serving import alive
from rota.top.queues import SORTS, arranged

SHOWN = 200
"""Queues on one page."""

SERVING = 50
"""Workers of a queue, and groups of jobs that wait in it, that its page names."""


def queues(call: Call) -> Page:
    """The queues, by name or by a figure; `name` finds those with it in their names."""
    asked = fields(call.request.query, "name", "sort", "after")
    sort = asked["sort"] if asked["sort"] in SORTS else "name"
    rows = arranged(call.looks.now().rows, sort, asked["name"])
    first = next((at + 1 for at, row in enumerate(rows) if row.name == asked["after"]), 0)
    page = rows[first : first + SHOWN]
    further = page[-1].name if first + SHOWN < len(rows) else None
    data = {"queues": [shown.of_queue(row) for row in page], "after": further}
    extra = {"asked": asked, "sort": sort, "sorts": list(SORTS), "total": len(rows)}
    return Page("queues.html", "Queues", data, extra)


def queue(call: Call) -> Page:
    """One queue: counts, lanes, settings, and the workers that serve it."""
    name = call.request.query.get("name", "")
    seen = call.looks.now()
    row = next((row for row in seen.rows if row.name == name), None)
    if row is None:
        message = f"There is no queue named {name}. Queues appear with their first job."
        raise NotThere(message)
    app = call.app
    stored = app.database.run(app.database.store.queue_settings()).get(name, NOTHING)
    lanes = [
        {"priority": lane.priority, "oldest_seconds": lane.oldest, "task": lane.task}
        for lane in seen.snapshot.lanes
        if lane.queue == name and lane.oldest is not None
    ]
    serving = [
        {
            "session": str(worker.id),
            "worker": worker.worker,
            "jobs": worker.leased,
            "alive": alive(worker),
        }
        for worker in seen.snapshot.workers
        if meaning(worker.queues, name) is not None
    ]
    data = {
        "queue": shown.of_queue(row),
        "lanes": lanes[:SERVING],
        "more_lanes": max(len(lanes) - SERVING, 0),
        "workers": serving[:SERVING],
        "more_workers": max(len(serving) - SERVING, 0),
        "set": _set(stored),
        "declared": _set(app.queues.declared.get(name, NOTHING)),
    }
    return Page("queue.html", name, data, {"history": lambda: history.if_known(call, name)})


def _set(settings: QueueSettings) -> dict[str, float]:
    """What one source says of a queue."""
    known = {name: getattr(settings, name) for name in settings.__slots__}
    return {name: value for name, value in known.items() if value is not None}
