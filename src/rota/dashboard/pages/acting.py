"""What can be done to one job, one flow, one queue and one cron entry.

Each action is a route of its own with a right of its own. What cannot be taken back is asked about
first: without the field `sure` the answer is the question, a page with a form, so that it works
without scripts.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rota.app.app import Rota
from rota.app.flow_handle import STOPPED_BY_HAND
from rota.dashboard.access import Right
from rota.dashboard.message import Moved, NotThere, Page
from rota.dashboard.pages.flow import flow_id
from rota.dashboard.recording import Recorder
from rota.dashboard.routes import Call, Route
from rota.errors import ConfigError
from rota.events import JobsEnqueued
from rota.model.audit import Deed
from rota.model.job import JobId, possible
from rota.model.options import check_name
from rota.model.states import State
from rota.store.cron import Ran
from rota.store.operation import Operation

SURE = "sure"
"""The field of a form that says yes."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that can be done.

    Attributes:
        path: Of its route; `{id}` is a job's or a flow's, else the field `name` says which queue or
            entry.
        done: What is said when it is done; `idle` where nothing was there to be done.
        act: Does it, and writes it down; whether it changed something.
        question: What it means, where it is asked about first.
        gone: Whether what it was done to is gone then.
    """

    path: str
    right: Right
    verb: str
    done: str
    idle: str
    act: Callable[[Rota, str, Recorder], bool]
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
            extra = {
                "action": self.path.replace("{id}", of),
                "back": back,
                "fields": {},
                "found_by": {},
                "mild": False,
            }
            return Page("sure.html", f"{self.verb} {of}?", data, extra)
        deed = Deed(call.request.access.who, self.name, {self._kind: of})
        changed = self.act(call.app, of, Recorder(call.app, deed))
        path, query = ("/jobs", {}) if changed and self.gone else back
        query = query | {"done": self.name if changed else f"{self.name}-idle"}
        return Moved(path, query, {"action": self.name, "of": of, "changed": changed})

    @property
    def _kind(self) -> str:
        """What it is done to."""
        kinds = {"jobs": "job", "flows": "flow", "queue": "queue", "cron": "entry"}
        return kinds[self.path.split("/")[1]]

    def _back(self, of: str) -> tuple[str, dict[str, str]]:
        """The page of what it is about, and its parameters."""
        match self.path.split("/")[1]:
            case "jobs" | "flows" as kind:
                return f"/{kind}/{of}", {}
            case "queue":
                return "/queue", {"name": of}
            case other:
                return f"/{other}", {}


def job_id(text: str) -> JobId:
    """The id of a job.

    Raises:
        NotThere: No job can have it.
    """
    if not (text.isascii() and text.isdigit() and possible(int(text))):
        message = f"There is no job {text[:30]}."
        raise NotThere(message)
    return JobId(int(text))


def _retry(app: Rota, of: str, recorder: Recorder) -> bool:
    return bool(recorder.run(app.database.store.retry([job_id(of)]), len))


def _delete(app: Rota, of: str, recorder: Recorder) -> bool:
    return bool(recorder.run(app.database.store.delete([job_id(of)]), len))


def _cancel(app: Rota, of: str, recorder: Recorder) -> bool:
    """Cancel a job that has not ended, or ask it to stop."""
    return cancel(app, [job_id(of)], recorder) > 0


def cancel(app: Rota, jobs: list[JobId], recorder: Recorder) -> int:
    """Cancel those of these jobs that have not ended, or ask them to stop; how many."""
    left = {job.id for job in app.jobs.get(jobs) if not job.state.finished}

    def changed(states: dict[JobId, State]) -> int:
        return sum(states.get(job) in {State.CANCELLED, State.RUNNING} for job in left)

    operation = app.database.store.cancel(sorted(left), app.queues.cancelled())
    return changed(recorder.run(operation, changed))


def _retry_flow(app: Rota, of: str, recorder: Recorder) -> bool:
    """Retry what has failed in a flow."""
    flow = flow_id(of)
    before = app.flows.get(flow).record()
    jobs = recorder.run(app.database.store.flows.retry(flow), len)
    # A flow may go on without any job that is available now.
    return bool(jobs) or app.flows.get(flow).record().round > before.round


def _cancel_flow(app: Rota, of: str, recorder: Recorder) -> bool:
    """Write down that a flow is cancelled, and do it; what this does not come to, workers do."""
    flow, flows = flow_id(of), app.database.store.flows
    app.flows.get(flow).record()  # or there is none
    if not recorder.run(flows.call_off(flow, STOPPED_BY_HAND), int):
        return False
    app.flows.get(flow).cancel()
    return True


def _pause(app: Rota, of: str, recorder: Recorder) -> bool:
    return recorder.run(app.database.store.pause(app.queue(of).name), int)


def _resume(app: Rota, of: str, recorder: Recorder) -> bool:
    return recorder.run(app.database.store.resume(app.queue(of).name), int)


def _pause_entry(app: Rota, of: str, recorder: Recorder) -> bool:
    return _entry_changed(app.database.store.cron.pause(_entry(of)), of, recorder)


def _resume_entry(app: Rota, of: str, recorder: Recorder) -> bool:
    return _entry_changed(app.database.store.cron.resume(_entry(of)), of, recorder)


def _entry_changed(operation: Operation[bool | None], of: str, recorder: Recorder) -> bool:
    def changed(done: bool | None) -> int:  # noqa: FBT001 - what the store says
        if done is None:
            raise _no_entry(of)
        return int(done)

    return bool(recorder.run(operation, changed))


def _run_entry(app: Rota, of: str, recorder: Recorder) -> bool:
    def changed(ran: Ran | None) -> int:
        if ran is None:
            raise _no_entry(of)
        return len(ran.stored.created)

    ran = recorder.run(app.database.store.cron.run(_entry(of)), changed)
    if ran is None or not ran.stored.created:
        return False
    app.events.emit(JobsEnqueued(ran.spec.task, ran.spec.queue, tuple(ran.stored.created)))
    return True


def _entry(name: str) -> str:
    """A name that a cron entry may have.

    Raises:
        NotThere: None has it.
    """
    try:
        return check_name(name, "cron")
    except ConfigError:
        raise _no_entry(name) from None


def _no_entry(name: str) -> NotThere:
    return NotThere(f"There is no cron entry {name[:200]}.")


ACTIONS = (
    Action(
        "/jobs/{id}/retry",
        Right.RETRY,
        "Retry",
        "The job is available again, with all its attempts.",
        "Nothing was done: the job is running, is already available, is left to a retry of its flow, or another job has "
        "its unique key.",
        _retry,
    ),
    Action(
        "/jobs/{id}/cancel",
        Right.CANCEL,
        "Cancel",
        "The job was cancelled, or asked to stop.",
        "Nothing was done: the job had already ended.",
        _cancel,
        "A waiting job will not run. A running job is asked to stop; how long that takes depends on its handler.",
    ),
    Action(
        "/jobs/{id}/delete",
        Right.DELETE,
        "Delete",
        "The job was deleted.",
        "Nothing was done: the job is running, or is already gone.",
        _delete,
        "This removes the job with its args, its result, its log and everything else about it. It cannot be undone.",
        gone=True,
    ),
    Action(
        "/flows/{id}/retry",
        Right.RETRY,
        "Retry what has failed",
        "What has failed is available again; whatever waits for that begins anew.",
        "Nothing was done: nothing in the flow has failed or was cancelled.",
        _retry_flow,
    ),
    Action(
        "/flows/{id}/cancel",
        Right.CANCEL,
        "Cancel",
        "The flow is cancelled; jobs that run are asked to stop.",
        "Nothing was done: the flow had ended.",
        _cancel_flow,
        "No node begins any more, and jobs that wait will not run. Those that run are asked to stop.",
    ),
    Action(
        "/queue/pause",
        Right.PAUSE,
        "Pause",
        "The queue is paused: workers take no more jobs from it.",
        "Nothing was done: the queue was already paused.",
        _pause,
    ),
    Action(
        "/queue/resume",
        Right.PAUSE,
        "Resume",
        "Workers take jobs from the queue again.",
        "Nothing was done: the queue was not paused.",
        _resume,
    ),
    Action(
        "/cron/pause",
        Right.PAUSE,
        "Pause",
        "The entry is paused: it makes no jobs.",
        "Nothing was done: the entry was already paused.",
        _pause_entry,
    ),
    Action(
        "/cron/resume",
        Right.PAUSE,
        "Resume",
        "The entry makes jobs again.",
        "Nothing was done: the entry was not paused.",
        _resume_entry,
    ),
    Action(
        "/cron/run",
        Right.RUN,
        "Run now",
        "The entry made a job.",
        "No job was made: another job already has its unique key.",
        _run_entry,
    ),
)
"""Everything that can be done."""

TOLD = {action.name: action.done for action in ACTIONS} | {
    f"{action.name}-idle": action.idle for action in ACTIONS
}
"""What a page says after an action, by its parameter `done`."""

ROUTES = tuple(Route("POST", action.path, action.right, action.page) for action in ACTIONS)
