"""`rota queues clear`: delete the jobs of a queue."""

from typing import TYPE_CHECKING, Any

import click

from rota.app.queue_handle import WAITING
from rota.cli.asking import ask
from rota.cli.options import Name, url_option
from rota.model.job import JobId
from rota.model.states import State
from rota.terminal.output import harmless, json_option, say, say_json

if TYPE_CHECKING:
    from rota import QueueHandle

DELETABLE: list[State] = [state for state in State if state is not State.RUNNING]


class States(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """States, with commas between them, or `all`."""

    name = "states"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read what was written."""
        if isinstance(value, list):
            return value
        names = [name.strip() for name in str(value).split(",")]
        if names == ["all"]:
            return DELETABLE
        known = ", ".join(DELETABLE)
        for name in names:
            if name == State.RUNNING:
                self.fail(
                    "running jobs are never deleted; `rota jobs cancel` stops them", param, ctx
                )
            if name not in DELETABLE:
                self.fail(f"{name!r} is not a state; use {known}, or all", param, ctx)
        return [State(name) for name in names]


@click.command()
@click.argument("name", type=Name("queue"))
@click.option(
    "--state",
    "states",
    type=States(),
    metavar="STATE,...",
    multiple=True,
    help="Jobs in these states, or all.  [default: scheduled,available,retryable]",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@url_option
@json_option
def clear(
    *, name: str, states: tuple[list[State], ...], yes: bool, url: str | None, as_json: bool
) -> None:
    """Delete the waiting jobs of a queue, or its jobs in the given states.

    Says how many there are, and asks first. Running jobs stay, and so do jobs that are enqueued
    meanwhile. Workers keep claiming and running jobs: pause the queue first to prevent that. Ctrl-C
    stops it; jobs deleted by then are gone.

    \b
    Examples:
      rota queues clear mail
      rota queues clear mail --state discarded,cancelled --yes
    """
    from rota.cli.database import database
    from rota.cli.queue_names import queue_record

    named = {state for some in states for state in some} or set(WAITING)
    wanted = [state for state in State if state in named]
    with database(url) as rota:
        until = rota.database.run(rota.database.store.last_job())
        record = queue_record(rota, name)
        counts = {state: record.counts[state] for state in wanted if record.counts.get(state)}
        if counts and not yes:
            _ask(name, counts, record.counts.get(State.RUNNING, 0))
        deleted = _delete(rota.queue(name), counts, until)
        running = queue_record(rota, name).counts.get(State.RUNNING, 0)
    if as_json:
        gone = {state.value: deleted.get(state, 0) for state in wanted}
        say_json({"queue": name, "deleted": gone, "running": running})
        return
    if not counts:
        say(f"queue {harmless(name)} has no such jobs")
    else:
        say(
            f"deleted {_listed(deleted)}" if any(deleted.values()) else "nothing was left to delete"
        )
    if running:
        say(f"{running:,} running job(s) are left")


def _ask(name: str, counts: dict[State, int], running: int) -> None:
    """Let the user confirm it.

    Raises:
        Failure: There is no user to ask, or the answer is no.
    """
    question = f"Delete {_listed(counts)} of queue {harmless(name)}?"
    if running:
        question += f" ({running:,} running stay.)"
    ask(question, "nothing was deleted")


def _delete(queue: "QueueHandle", counts: dict[State, int], until: JobId) -> dict[State, int]:
    """Delete in batches with a progress bar; returns the numbers of deleted jobs."""
    from rota.terminal.bar import bar

    begun: set[State] = set()
    with bar() as progress:

        def tell(state: State, deleted: int) -> None:
            if state not in begun:
                begun.add(state)
                progress.begin(state.value, counts[state])
            progress.at(deleted)

        return queue.clear(counts, until=until, told=tell)


def _listed(counts: dict[State, int]) -> str:
    return ", ".join(f"{count:,} {state}" for state, count in counts.items() if count) + " job(s)"
