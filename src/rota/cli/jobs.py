"""`rota jobs`: look at jobs, and act on them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from rota.cli.each_shard import each_shard
from rota.cli.jobs_found import act_on_found, found_options, given
from rota.cli.options import Name, ids_argument, url_option, urls_option
from rota.cli.watch import watch
from rota.model.job import LARGEST_ID, JobId
from rota.model.states import State
from rota.terminal.exits import FAILED, complain
from rota.terminal.output import json_option, say, say_json, table

if TYPE_CHECKING:
    from rota import JobRecord, Rota

DEFAULT_LIMIT = 50


@click.group()
def jobs() -> None:
    """List, show, watch, retry, cancel and delete jobs.

    \b
    Examples:
      rota jobs list --state discarded --queue mail
      rota jobs show 4711
      rota jobs watch 4711
      rota jobs retry --all-discarded
    """


@jobs.command("list")
@click.option(
    "--state", type=click.Choice([state.value for state in State]), help="Only jobs in this state."
)
@click.option("--queue", metavar="NAME", type=Name("queue"), help="Only jobs of this queue.")
@click.option("--task", metavar="NAME", type=Name("task"), help="Only jobs of this task.")
@click.option(
    "--subject",
    metavar="KEY",
    help="Only jobs with this unique key, and their rounds; a * at the end stands for any text.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="At most so many jobs.",
)
@click.option(
    "--after",
    metavar="ID",
    type=click.IntRange(1, LARGEST_ID),
    help="Only jobs that are older than this one: the next page.",
)
@urls_option
@json_option
@each_shard()
def list_(
    *,
    state: str | None,
    queue: str | None,
    task: str | None,
    subject: str | None,
    limit: int,
    after: int | None,
    url: str | None,
    as_json: bool,
) -> None:
    """List jobs, the newest first.

    \b
    Examples:
      rota jobs list --state discarded
      rota jobs list --queue mail --limit 200 --json
      rota jobs list --subject 'site:example.org'
    """
    from rota.cli.database import database

    with database(url) as rota:
        records = rota.jobs.list(
            state=state, queue=queue, task=task, subject=subject, limit=limit, after=after
        )
        _say_list(records, limit, by_subject=subject is not None, as_json=as_json)
        if not records:
            _require(rota, queue, task)


def _say_list(
    records: "Sequence[JobRecord]", limit: int, *, by_subject: bool, as_json: bool
) -> None:
    from rota.cli import job_text
    from rota.terminal import documents

    if as_json:
        say_json({"jobs": [documents.summary(job) for job in records]})
        return
    nothing = "There are no such jobs."
    if not by_subject:
        table(job_text.HEADINGS, [job_text.row(job) for job in records], nothing=nothing)
    else:
        rows = [job_text.subject_row(job) for job in records]
        table(job_text.SUBJECT_HEADINGS, rows, nothing=nothing)
    if len(records) == limit:
        click.echo(f"({limit} jobs; more with --limit, or --after {records[-1].id})", err=True)


@jobs.command()
@ids_argument()
@url_option
@json_option
def show(*, ids: tuple[int, ...], url: str | None, as_json: bool) -> None:
    """Show everything about jobs: args, progress, log, result, and why each attempt failed.

    \b
    Example:
      rota jobs show 4711
    """
    from rota.cli import job_text
    from rota.cli.database import database
    from rota.terminal import documents

    wanted = _ids(ids)
    with database(url) as rota:
        records = rota.jobs.get(wanted)
    missing = _without(wanted, (job.id for job in records))
    if as_json:
        say_json({"jobs": [documents.details(job) for job in records], "missing": missing})
    else:
        for number, job in enumerate(records):
            if number:
                say()
            job_text.say_details(job)
    _end(missing, {})


jobs.add_command(watch)


@jobs.command()
@ids_argument(required=False)
@click.option("--all-discarded", is_flag=True, help="The same as --state discarded.")
@found_options
@url_option
@json_option
def retry(
    *,
    ids: tuple[int, ...],
    all_discarded: bool,
    dry_run: bool,
    url: str | None,
    as_json: bool,
    **found_by: str | None,
) -> None:
    """Make jobs available again now, with all their attempts.

    For finished jobs, and for jobs that wait for their time. Without ids: all jobs that match, of those that were
    discarded, unless --state says otherwise.

    \b
    Examples:
      rota jobs retry 4711 4712
      rota jobs retry --all-discarded --queue mail
      rota jobs retry --state scheduled --task shop.send --dry-run
    """
    from rota.cli.database import database

    if all_discarded and found_by["state"] not in {None, State.DISCARDED}:
        message = "--all-discarded and --state exclude each other"
        raise click.UsageError(message)
    said = given(ids, found_by | ({"state": "discarded"} if all_discarded else {}), dry_run=dry_run)
    wanted = _ids(ids)
    with database(url) as rota:
        if said:
            changed = act_on_found(rota, "retry", said, dry_run=dry_run, yes=True, as_json=as_json)
            if changed is not None:
                _say_found(
                    rota,
                    said,
                    changed,
                    "available again",
                    {"retried": sorted(changed), "unchanged": {}},
                    as_json=as_json,
                )
            return
        done = rota.jobs.retry(wanted)
        left = rota.jobs.get(_without(wanted, done))
    found = {job.id: job.state for job in left}
    keys = {job.id: job.unique_key for job in left if job.state.finished}
    # Jobs that are available already are where they should be.
    kept = {job: state for job, state in found.items() if state is not State.AVAILABLE}
    missing = _without(wanted, [*done, *found])
    if as_json:
        say_json({"retried": sorted(done), "unchanged": _texts(found), "missing": missing})
    else:
        _say_each(wanted, done, "available again")
        _say_each(wanted, found.keys() - kept.keys(), "available already")
    why = {job: f"is {state} and cannot be retried" for job, state in kept.items()}
    # A finished job stays as it is only because of its unique key.
    why |= {
        job: f"stays {kept[job]}: another job has its unique key {key!r} (see --subject)"
        for job, key in keys.items()
        if job in kept and key is not None
    }
    _end(missing, why)


@jobs.command()
@ids_argument(required=False)
@found_options
@click.option("--yes", is_flag=True, help="Do not ask.")
@url_option
@json_option
def cancel(
    *,
    ids: tuple[int, ...],
    dry_run: bool,
    yes: bool,
    url: str | None,
    as_json: bool,
    **found_by: str | None,
) -> None:
    """Cancel jobs: waiting jobs at once, running jobs by asking them to stop.

    Without ids: all jobs that match and have not ended. Says how many that are, and asks.

    \b
    Examples:
      rota jobs cancel 4711
      rota jobs cancel --queue mail --state scheduled --yes
    """
    from rota.cli.database import database

    said = given(ids, found_by, dry_run=dry_run)
    wanted = _ids(ids)
    with database(url) as rota:
        if said:
            changed = act_on_found(rota, "cancel", said, dry_run=dry_run, yes=yes, as_json=as_json)
            if changed is not None:
                done = "cancelled, or asked to stop"
                _say_found(rota, said, changed, done, {"jobs": _texts(changed)}, as_json=as_json)
            return
        found = rota.jobs.cancel(wanted)
    missing = _without(wanted, found)
    kept = {
        job: state
        for job, state in found.items()
        if state not in {State.CANCELLED, State.RUNNING}
    }  # fmt: skip
    if as_json:
        say_json({"jobs": _texts(found), "missing": missing})
    else:
        _say_each(wanted, _in(found, State.CANCELLED), "cancelled")
        _say_each(wanted, _in(found, State.RUNNING), "running, and asked to stop")
    _end(missing, {job: f"is {state} already" for job, state in kept.items()})


@jobs.command()
@ids_argument(required=False)
@found_options
@click.option("--yes", is_flag=True, help="Do not ask.")
@url_option
@json_option
def delete(
    *,
    ids: tuple[int, ...],
    dry_run: bool,
    yes: bool,
    url: str | None,
    as_json: bool,
    **found_by: str | None,
) -> None:
    """Delete jobs that are not running, with everything about them.

    Without ids: all jobs that match. Says how many that are, and asks.

    \b
    Examples:
      rota jobs delete 4711
      rota jobs delete --state completed --task shop.send --dry-run
    """
    from rota.cli.database import database

    said = given(ids, found_by, dry_run=dry_run)
    wanted = _ids(ids)
    with database(url) as rota:
        if said:
            changed = act_on_found(rota, "delete", said, dry_run=dry_run, yes=yes, as_json=as_json)
            if changed is not None:
                _say_found(
                    rota,
                    said,
                    changed,
                    "deleted",
                    {"deleted": sorted(changed), "unchanged": {}},
                    as_json=as_json,
                )
            return
        done = rota.jobs.delete(wanted)
        kept = {job.id: job.state for job in rota.jobs.get(_without(wanted, done))}
    missing = _without(wanted, [*done, *kept])
    if as_json:
        say_json({"deleted": sorted(done), "unchanged": _texts(kept), "missing": missing})
    else:
        _say_each(wanted, done, "deleted")
    _end(missing, {job: f"is {state}; cancel it first" for job, state in kept.items()})


# What the commands share ------------------------------------------------------------------------


def _require(rota: "Rota", queue: str | None, task: str | None) -> None:
    """Say, where no job was found, what may have been misspelt; without such a queue it is the end."""
    from rota.cli.queue_names import ask_for_task, require_queue

    require_queue(rota, queue)
    ask_for_task(rota, task)


def _ids(ids: tuple[int, ...]) -> list[JobId]:
    """Each id once, in the order given."""
    return [JobId(job) for job in dict.fromkeys(ids)]


def _without(wanted: Iterable[JobId], done: Iterable[JobId]) -> list[JobId]:
    rest = set(done)
    return [job for job in wanted if job not in rest]


def _in(found: Mapping[JobId, State], wanted: State) -> list[JobId]:
    return [job for job, state in found.items() if state is wanted]


def _texts(found: Mapping[JobId, State]) -> dict[str, str]:
    return {str(job): state.value for job, state in found.items()}


def _jobs(count: int) -> str:
    return "1 job is" if count == 1 else f"{count:,} jobs are"


def _say_found(
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
        say(f"{_jobs(len(changed))} {done}" if changed else "there are no such jobs")
    if not changed:
        _require(rota, said.get("queue"), said.get("task"))


def _say_each(wanted: Iterable[JobId], done: Collection[JobId], what: str) -> None:
    for job in wanted:
        if job in done:
            say(f"job {job} is {what}")


def _end(missing: Iterable[JobId], kept: Mapping[JobId, str]) -> None:
    """Say what could not be done, and exit accordingly."""
    for job in missing:
        complain(f"job {job} does not exist (it may have been deleted)")
    for job, why in kept.items():
        complain(f"job {job} {why}")
    if missing or kept:
        raise click.exceptions.Exit(FAILED)
