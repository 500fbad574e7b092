"""What can be done to one job, one queue and one cron entry.

Each action is a route of its own with a right of its own. What cannot be taken back is asked about first: without
the field `sure` the answer is the question, a page with a form, so that it works without scripts.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rota.app.app import Rota
from rota.dashboard.access import Right
from rota.dashboard.message import Moved, NotThere, Page
from rota.dashboard.routes import Call, Route
from rota.model.job import JobId, possible
from rota.model.states import State

SURE = "sure"
"""The field of a form that says yes."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that can be done.

    Attributes:
        path: Of its route; `{id}` is a job's, else the field `name` says which queue or entry.
        done: What is said when it is done; `idle` where nothing was there to be done.
        act: Does it; whether it changed something.
        question: What it means, where it is asked about first.
        gone: Whether what it was done to is gone then.
    """

    path: str
    right: Right
    verb: str
    done: str
    idle: str
    act: Callable[[Rota, str], bool]
    question: str = ""
    gone: bool = False

    @property
    def name(self) -> str:
        """Such as `jobs-retry`, `queue-pause`."""
        return self.path.replace("{id}/", "").removeprefix("/").replace("/", "-")

    def page(self, call: Call) -> Page | Moved:
        """Ask, or do it."""
        of = call.parts.get("id") or call.request.form.get("name", "")
        back = self._back(of)
        if self.question and not call.request.form.get(SURE):
            data = {"question": self.question, "verb": self.verb, "of": of}
            extra = {"action": self.path.replace("{id}", of), "back": back}
            return Page("sure.html", f"{self.verb} {of}?", data, extra)
        changed = self.act(call.app, of)
        path, query = ("/jobs", {}) if changed and self.gone else back
        query = query | {"done": self.name if changed else f"{self.name}-idle"}
        return Moved(path, query, {"action": self.name, "of": of, "changed": changed})

    def _back(self, of: str) -> tuple[str, dict[str, str]]:
        """The page of what it is about, and its parameters."""
        match self.path.split("/")[1]:
            case "jobs":
                return f"/jobs/{of}", {}
            case "queue":
                return "/queue", {"name": of}
            case other:
                return f"/{other}", {}


def _job(text: str) -> JobId:
    """The id of a job.

    Raises:
        NotThere: No job can have it.
    """
    if not (text.isascii() and text.isdigit() and possible(int(text))):
        message = f"There is no job {text[:30]}."
        raise NotThere(message)
    return JobId(int(text))


def _cancel(app: Rota, of: str) -> bool:
    """Cancel a job that has not ended, or ask it to stop."""
    before = app.jobs.get([_job(of)])
    if not before or before[0].state.finished:
        return False
    return app.jobs.cancel([_job(of)]).get(_job(of)) in {State.CANCELLED, State.RUNNING}


def _run(app: Rota, of: str) -> bool:
    return not app.cron.run(of).duplicate


ACTIONS = (
    Action(
        "/jobs/{id}/retry",
        Right.RETRY,
        "Retry",
        "The job is available again, with all its attempts.",
        "Nothing was done: the job runs, is available already, or another one has its key.",
        lambda app, of: bool(app.jobs.retry([_job(of)])),
    ),
    Action(
        "/jobs/{id}/cancel",
        Right.CANCEL,
        "Cancel",
        "The job is cancelled, or asked to stop.",
        "Nothing was done: the job had ended.",
        _cancel,
        "A job that waits will not run. One that runs is asked to stop, which takes what its handler needs for it.",
    ),
    Action(
        "/jobs/{id}/delete",
        Right.DELETE,
        "Delete",
        "The job is deleted.",
        "Nothing was done: the job runs, or is gone already.",
        lambda app, of: bool(app.jobs.delete([_job(of)])),
        "It is removed with its args, its result, its log and all that is known of it. That cannot be taken back.",
        gone=True,
    ),
    Action(
        "/queue/pause",
        Right.PAUSE,
        "Pause",
        "The queue is paused: workers take no more of its jobs.",
        "Nothing was done: the queue was paused already.",
        lambda app, of: app.queue(of).pause(),
    ),
    Action(
        "/queue/resume",
        Right.PAUSE,
        "Resume",
        "Workers take jobs from the queue again.",
        "Nothing was done: the queue was not paused.",
        lambda app, of: app.queue(of).resume(),
    ),
    Action(
        "/cron/pause",
        Right.PAUSE,
        "Pause",
        "The entry is paused: no jobs are made of it.",
        "Nothing was done: the entry was paused already.",
        lambda app, of: app.cron.pause(of),
    ),
    Action(
        "/cron/resume",
        Right.PAUSE,
        "Resume",
        "Jobs are made of the entry again.",
        "Nothing was done: the entry was not paused.",
        lambda app, of: app.cron.resume(of),
    ),
    Action(
        "/cron/run",
        Right.RUN,
        "Run now",
        "A job of the entry was made.",
        "No job was made: there is one with its unique key already.",
        _run,
    ),
)
"""Everything that can be done."""

TOLD = {action.name: action.done for action in ACTIONS} | {
    f"{action.name}-idle": action.idle for action in ACTIONS
}
"""What a page says after an action, by its parameter `done`: no text of a link is ever shown."""

ROUTES = tuple(Route("POST", action.path, action.right, action.page) for action in ACTIONS)
