"""`rota jobs`: look at jobs, and act on them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from rota.cli.each_shard import each_shard
from rota.cli.jobs_found import act_on_found, found_options, given
from rota.cli.jobs_told import end, once, require, say_each, say_found, texts, without
from rota.cli.options import Name, ids_argument, page_options, say_page, url_option, urls_option
from rota.cli.retry import retry
from rota.cli.signal import signal
from rota.cli.watch import watch
from rota.model.job import JobId
from rota.model.states import State
from rota.terminal.output import json_option, say, say_json, table

if TYPE_CHECKING:
    from rota import JobRecord


@click.group()
def jobs() -> None:
    """List, show, watch, signal, retry, cancel and delete jobs.

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
@page_options("jobs", 1_000_000)
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
            require(rota, queue, task)


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
    say_page("jobs", [job.id for job in records], limit)


@jobs.command()
@ids_argument()
@url_option
@json_option
def show(*, ids: tuple[int, ...], url: str | None, as_json: bool) -> None:
    """Show everything about jobs, also why they do not run, and why attempts failed.

    This includes args, progress, steps, log and result.

    \b
    Example:
      rota jobs show 4711
    """
    from rota.cli import job_text
    from rota.cli.database import database
    from rota.cli.job_why import whys
    from rota.terminal import documents

    wanted = once(ids)
    with database(url) as rota:
        records = rota.jobs.get(wanted)
        steps = {job.id: rota.job(job.id).steps() for job in records}
        flows = rota.flows.memberships(records)
        why = whys(rota, records, steps, flows)
    missing = without(wanted, (job.id for job in records))
    if as_json:
        found = [
            documents.details(job)
            | documents.steps(steps[job.id])
            | documents.membership(flows.get(job.id))
            | {"why": [job_text.addressed_reason(one) for one in why.get(job.id, ())]}
            for job in records
        ]
        say_json({"jobs": found, "missing": missing})
    else:
        for number, job in enumerate(records):
            if number:
                say()
            job_text.say_details(job, steps[job.id], flows.get(job.id), why.get(job.id))
    end(missing, {})


jobs.add_command(watch)
jobs.add_command(signal)
jobs.add_command(retry)


@jobs.command()
@ids_argument(required=False)
@found_options
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
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

    Without ids: all jobs that match and have not ended. Says how many that are, and asks first.

    \b
    Examples:
      rota jobs cancel 4711
      rota jobs cancel --queue mail --state scheduled --yes
    """
    from rota.cli.database import database

    said = given(ids, found_by, dry_run=dry_run)
    wanted = once(ids)
    with database(url) as rota:
        if said:
            acted = act_on_found(rota, "cancel", said, dry_run=dry_run, yes=yes, as_json=as_json)
            if acted is not None:
                changed, done = acted.changed, "cancelled, or asked to stop"
                say_found(rota, said, changed, done, {"jobs": texts(changed)}, as_json=as_json)
            return
        found = rota.jobs.cancel(wanted)
    missing = without(wanted, found)
    kept = {
        job: state
        for job, state in found.items()
        if state not in {State.CANCELLED, State.RUNNING}
    }  # fmt: skip
    if as_json:
        say_json({"jobs": texts(found), "missing": missing})
    else:
        say_each(wanted, _in(found, State.CANCELLED), "cancelled")
        say_each(wanted, _in(found, State.RUNNING), "running, and asked to stop")
    end(missing, {job: f"is already {state}" for job, state in kept.items()})


@jobs.command()
@ids_argument(required=False)
@found_options
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
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

    Without ids: all jobs that match. Says how many that are, and asks first.

    \b
    Examples:
      rota jobs delete 4711
      rota jobs delete --state completed --task shop.send --dry-run
    """
    from rota.cli.database import database

    said = given(ids, found_by, dry_run=dry_run)
    wanted = once(ids)
    with database(url) as rota:
        if said:
            acted = act_on_found(rota, "delete", said, dry_run=dry_run, yes=yes, as_json=as_json)
            if acted is not None:
                document = {"deleted": sorted(acted.changed), "unchanged": {}}
                say_found(rota, said, acted.changed, "deleted", document, as_json=as_json)
            return
        done = rota.jobs.delete(wanted)
        kept = {job.id: job.state for job in rota.jobs.get(without(wanted, done))}
    missing = without(wanted, [*done, *kept])
    if as_json:
        say_json({"deleted": sorted(done), "unchanged": texts(kept), "missing": missing})
    else:
        say_each(wanted, done, "deleted")
    end(missing, {job: f"is {state}; cancel it first" for job, state in kept.items()})


def _in(found: Mapping[JobId, State], wanted: State) -> list[JobId]:
    return [job for job, state in found.items() if state is wanted]
