"""What the commands that act on jobs say of what they did."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

import click

from rota.model.job import JobId
from rota.model.states import State
from rota.terminal.exits import FAILED, complain
from rota.terminal.output import say, say_json

if TYPE_CHECKING:
    from rota import Rota


def require(rota: "Rota", queue: str | None, task: str | None) -> None:
    """Say, where no job was found, what may have been misspelt; without such a queue it is the end."""
    from rota.cli.queue_names import ask_for_task, require_queue

    require_queue(rota, queue)
    ask_for_task(rota, task)


def once(ids: tuple[int, ...]) -> list[JobId]:
    """Each id once, in the order given."""
    return [JobId(job) for job in dict.fromkeys(ids)]


def without(wanted: Iterable[JobId], done: Iterable[JobId]) -> list[JobId]:
    """What is left of the wanted ones, in the order given."""
    rest = set(done)
    return [job for job in wanted if job not in rest]


def texts(found: Mapping[JobId, State]) -> dict[str, str]:
    """Jobs and their states, for programs."""
    return {str(job): state.value for job, state in found.items()}


def say_found(
    rota: "Rota",
    said: Mapping[str, str],
    changed: Mapping[JobId, State],
    done: str,
    document: Mapping[str, object],
    *,
    as_json: bool,
) -> None:
    """Say what became of all jobs that match."""
    if as_json:
        say_json({**document, "missing": []})
    else:
        jobs = "1 job is" if len(changed) == 1 else f"{len(changed):,} jobs are"
        say(f"{jobs} {done}" if changed else "there are no such jobs")
    if not changed and not document.get("unchanged"):
        require(rota, said.get("queue"), said.get("task"))


def say_each(wanted: Iterable[JobId], done: Collection[JobId], what: str) -> None:
    """Say of each of these jobs what it is now, one a line."""
    for job in wanted:
        if job in done:
            say(f"job {job} is {what}")


def end(missing: Iterable[JobId], kept: Mapping[JobId, str]) -> None:
    """Say what could not be done, and exit accordingly."""
    for job in missing:
        complain(f"job {job} does not exist (it may have been deleted)")
    for job, why in kept.items():
        complain(f"job {job} {why}")
    if missing or kept:
        raise click.exceptions.Exit(FAILED)
