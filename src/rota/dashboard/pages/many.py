"""What can be done to many jobs: to those that are selected, and to everything that matches.

A selection is acted on at once, in one transaction. What is done to everything that matches is
asked about first, with how many that are, and is carried out by a job of Rota's own
(`rota.app.bulk_job`), whose page shows how far it has come.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rota.app.acting import BATCH, CANCEL, DELETE, RETRY, Kind
from rota.app.bulk import Bulk
from rota.app.bulk_job import order
from rota.app.matching import FIELDS, Matching, matching
from rota.dashboard.access import Access, Right
from rota.dashboard.carrier import queue_for
from rota.dashboard.message import Moved, NotThere, Page, Refused
from rota.dashboard.pages.acting import SURE, cancel, job_id
from rota.dashboard.recording import Recorder
from rota.dashboard.routes import Call, Route, fields
from rota.errors import ConfigError
from rota.model.audit import Deed
from rota.model.job import JobId
from rota.model.states import State

WHICH = "which"
"""The field that says on which jobs: `all` that match, else those that are selected."""

SELECTED = "job-"
"""How the fields of selected jobs begin; the rest is an id."""

UNTIL = "until"
"""The field that says up to which job: later ones were not counted."""


@dataclass(frozen=True, slots=True)
class ManyAction:
    """Something that can be done to many jobs.

    Attributes:
        done: What is said of a selection afterwards.
        question: What it means.
        asks: Whether that is asked of a selection, too.
    """

    kind: Kind
    right: Right
    done: str
    question: str
    asks: bool

    @property
    def name(self) -> str:
        """Such as `jobs-retry`."""
        return f"jobs-{self.kind.name}"

    @property
    def path(self) -> str:
        """Of its route."""
        return f"/jobs/{self.kind.name}"

    def page(self, call: Call) -> Page | Moved:
        """Ask, or do it."""
        form = call.request.form
        return self._all(call) if form.get(WHICH) == "all" else self._selected(call)

    def verb(self, state: State | None) -> str:
        """What its buttons say."""
        if self.kind is RETRY and state is State.SCHEDULED:
            return "Run now"
        return self.kind.name.capitalize()

    def _selected(self, call: Call) -> Page | Moved:
        form = call.request.form
        jobs = [job_id(name.removeprefix(SELECTED)) for name in form if name.startswith(SELECTED)]
        if not 1 <= len(jobs) <= BATCH:
            message = f"Select from 1 to {BATCH} jobs; {len(jobs)} are selected."
            raise ConfigError(message)
        found_by = _said(form)
        of = ", ".join(map(str, sorted(jobs)))
        if self.asks and not form.get(SURE):
            data = {"question": self.question, "verb": self.verb(None), "of": of}
            hidden = found_by | {f"{SELECTED}{job}": "yes" for job in jobs}
            number = "1 job" if len(jobs) == 1 else f"{len(jobs)} jobs"
            return self._sure(f"{self.verb(None)} {number}?", data, found_by, hidden)
        deed = Deed(call.request.access.who, self.name, {"jobs": of})
        changed = self._act(call, jobs, Recorder(call.app, deed))
        query = found_by | {"done": f"{self.name}-selected", "changed": str(changed)}
        answer: dict[str, object] = {"action": self.name, "of": of, "changed": changed}
        if self.kind is RETRY:
            left = len(call.app.flows.left_to_retry(call.app.jobs.get(jobs)))
            answer["left"] = left
            if left:
                query |= {"done": f"{self.name}-left", "left": str(left)}
        return Moved("/jobs", query, answer)

    def _act(self, call: Call, jobs: list[JobId], recorder: Recorder) -> int:
        if self.kind is CANCEL:
            return cancel(call.app, jobs, recorder)
        store = call.app.database.store
        act = store.retry if self.kind is RETRY else store.delete
        return len(recorder.run(act(jobs), len))

    def _all(self, call: Call) -> Page | Moved:
        form, database = call.request.form, call.app.database
        found_by = _said(form)
        wanted = matched(call, found_by)
        last = database.run(database.store.last_job())
        until = min(job_id(form[UNTIL]), last) if form.get(UNTIL) else last
        bulk = Bulk(call.app, self.kind, wanted, until)
        count = bulk.count()
        if count.exact and not count.jobs:
            message = f"No matching job can be {self.kind.done}."
            raise NotThere(message)
        if not form.get(SURE):
            data = {
                "question": self.question,
                "verb": self.verb(wanted.wanted.state),
                "of": found_by,
                "states": [state.value for state in bulk.states],
                "jobs": count.jobs,
                "total": count.total,
                "exact": count.exact,
                "until": str(until),
            }
            hidden = found_by | {WHICH: "all", UNTIL: str(until)}
            return self._sure(f"{data['verb']} {count}?", data, found_by, hidden)
        seen = call.looks.now()
        queue = queue_for(seen.snapshot.workers, seen.rows, found_by.get("queue", ""))
        expected = count.jobs if count.exact else None
        deed = Deed(call.request.access.who, self.name, found_by)
        asked = order(queue, self.kind.name, found_by, until, expected)
        [job] = database.run(
            database.store.audit.recorded(
                database.store.enqueue(asked), lambda stored: deed._replace(job=stored[0])
            )
        )
        query = {"done": f"{self.name}-all"}
        return Moved(f"/jobs/{job}", query, {"action": self.name, "of": found_by, "job": str(job)})

    def _sure(
        self,
        title: str,
        data: Mapping[str, object],
        found_by: dict[str, str],
        hidden: dict[str, str],
    ) -> Page:
        back = ("/discarded", {}) if "cause" in found_by else ("/jobs", found_by)
        extra = {
            "action": self.path,
            "back": back,
            "fields": hidden,
            "found_by": found_by,
            "mild": not self.asks,
        }
        return Page("sure.html", title, data, extra)


def matched(call: Call, texts: Mapping[str, str]) -> Matching:
    """What jobs are found by, if the request may find them so.

    Raises:
        ConfigError: A text cannot be read.
        Refused: It says something of args, or a task hides that arg.
    """
    if (texts.get("subject") or texts.get("arg")) and not call.request.access.may(Right.ARGS):
        message = (
            "Finding jobs by args, or by keys, which are made of args, needs the right “args”."
        )
        raise Refused(message)
    found = matching(texts)
    arg = found.wanted.arg
    if arg and any(arg.path[0] in task.redact for task in call.app.tasks.values()):
        message = f"The arg {arg.path[0]} is hidden, so jobs cannot be found by it."
        raise Refused(message)
    return found


def offered(access: Access, state: State | None) -> list[dict[str, str]]:
    """The buttons for jobs in a state."""
    return [
        {"path": action.path, "verb": action.verb(state), "asks": "yes" if action.asks else ""}
        for action in ACTIONS
        if access.may(action.right) and (state is None or state in action.kind.able)
    ]


def _said(form: Mapping[str, str]) -> dict[str, str]:
    """The fields that jobs are found by, without empty ones."""
    return {name: text for name, text in fields(form, *FIELDS).items() if text}


ACTIONS = (
    ManyAction(
        RETRY,
        Right.RETRY,
        "{changed} of the selected jobs are available again.",
        "Each job becomes available at once, with all its attempts. Jobs that are already available, or whose unique "
        "key another job has, stay as they are, and so do jobs that a retry of their flow would run again.",
        asks=False,
    ),
    ManyAction(
        CANCEL,
        Right.CANCEL,
        "{changed} of the selected jobs were cancelled, or asked to stop.",
        "Waiting jobs will not run. Running jobs are asked to stop; how long that takes depends on their handlers.",
        asks=True,
    ),
    ManyAction(
        DELETE,
        Right.DELETE,
        "{changed} of the selected jobs were deleted.",
        "This removes the jobs with their args, results, logs and everything else about them. It cannot be undone. "
        "Running jobs stay.",
        asks=True,
    ),
)

LEFT = (
    "{changed} of the selected jobs are available again. {left} were left to their flows, whose nodes have ended: retry "
    "the flows instead."
)

TOLD = {
    **{f"{action.name}-selected": action.done for action in ACTIONS},
    **{
        f"{action.name}-all": "This job does the work. It goes on if the dashboard ends, and can be cancelled."
        for action in ACTIONS
    },
    "jobs-retry-left": LEFT,
}
"""What a page says after an action, by its parameter `done`."""

ROUTES = tuple(Route("POST", action.path, action.right, action.page) for action in ACTIONS)
