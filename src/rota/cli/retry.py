"""`rota jobs retry`: make jobs available again."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from rota.cli.jobs_found import act_on_found, found_options, given
from rota.cli.jobs_told import end, once, say_each, say_found, texts, without
from rota.cli.options import ids_argument, url_option
from rota.model.job import JobId
from rota.model.states import State
from rota.terminal.output import json_option, say, say_json

if TYPE_CHECKING:
    from rota import Rota


@click.command()
@ids_argument(required=False)
@click.option("--all-discarded", is_flag=True, help="The same as --state discarded.")
@found_options
@click.option(
    "--alone",
    is_flag=True,
    help="Also jobs of flows whose nodes have ended: they run by themselves, and leave their flows.",
)
@url_option
@json_option
def retry(
    *,
    ids: tuple[int, ...],
    all_discarded: bool,
    dry_run: bool,
    alone: bool,
    url: str | None,
    as_json: bool,
    **found_by: str | None,
) -> None:
    """Make jobs available again now, with all their attempts.

    For finished jobs, and for jobs that wait for their time. Without ids: all discarded jobs that
    match, or those in the state that --state names. A job that has ended its node of a flow is left
    as it is: rota flows retry runs it again, with what waits for it.

    \b
    Examples:
      rota jobs retry 4711 4712
      rota jobs retry --all-discarded --queue mail
      rota jobs retry --state scheduled --task shop.send --dry-run
    """
    from rota.cli.database import database

    if all_discarded and found_by["state"] not in {None, State.DISCARDED}:
        message = "--all-discarded and --state cannot be combined"
        raise click.UsageError(message)
    said = given(ids, found_by | ({"state": "discarded"} if all_discarded else {}), dry_run=dry_run)
    with database(url) as rota:
        if said:
            _retry_found(rota, said, alone=alone, dry_run=dry_run, as_json=as_json)
        else:
            _retry_given(rota, once(ids), alone=alone, as_json=as_json)


def _retry_given(rota: "Rota", wanted: list[JobId], *, alone: bool, as_json: bool) -> None:
    from rota.cli.flow_members import held, node_of

    members = rota.flows.memberships(rota.jobs.get(wanted))
    done = rota.jobs.retry(wanted, alone=alone)
    now = rota.jobs.get(wanted)
    left = [job for job in now if job.id not in done]
    found = {job.id: job.state for job in left}
    keys = {job.id: job.unique_key for job in left if job.state.finished}
    # Jobs that are available already are where they should be.
    kept = {job: state for job, state in found.items() if state is not State.AVAILABLE}
    missing = without(wanted, [*done, *found])
    if as_json:
        say_json({"retried": sorted(done), "unchanged": texts(found), "missing": missing})
    else:
        say_each(wanted, done, "available again")
        say_each(wanted, found.keys() - kept.keys(), "already available")
        still = rota.flows.memberships(now)
        for job in now:
            if job.id in done and job.id in members and job.id not in still:
                say(f"job {job.id} runs alone: {node_of(members[job.id])} has ended")
    why = {job: f"is {state} and cannot be retried" for job, state in kept.items()}
    # A finished job stays as it is only because of its unique key, or for its flow.
    why |= {
        job: f"stays {kept[job]}: another job has its unique key {key!r} (see --subject)"
        for job, key in keys.items()
        if job in kept and key is not None
    }
    if not alone:
        why |= {job: held(member) for job, member in rota.flows.left_to_retry(left).items()}
    end(missing, why)


def _retry_found(
    rota: "Rota", said: Mapping[str, str], *, alone: bool, dry_run: bool, as_json: bool
) -> None:
    from rota.cli.flow_members import STILL_HELD, many_held

    acted = act_on_found(
        rota, "retry", said, dry_run=dry_run, yes=True, as_json=as_json, alone=alone
    )
    if acted is None:
        if not (alone or as_json) and rota.flows.list(limit=1):
            click.echo(f"({STILL_HELD})", err=True)
        return
    changed, left = acted
    if as_json or changed or not left:
        unchanged = dict.fromkeys(left, State(said.get("state", State.DISCARDED)))
        document = {"retried": sorted(changed), "unchanged": texts(unchanged)}
        say_found(rota, said, changed, "available again", document, as_json=as_json)
    if left:
        click.echo(f"({many_held(left.values())})", err=True)
