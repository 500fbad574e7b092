"""`rota flows`: look at flows, and act on them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rota.cli.each_shard import each_shard
from rota.cli.flow_watch import watch
from rota.cli.options import ID, Name, ids_argument, page_options, say_page, url_option, urls_option
from rota.errors import FlowNotFound
from rota.model.flow import FlowState
from rota.terminal.exits import FAILED, Failure, complain
from rota.terminal.output import json_option, say, say_json, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rota.app.flow_handle import FlowHandle

SHOWN_NODES = 200
"""Nodes that are shown unless told otherwise."""


@click.group()
def flows() -> None:
    """List, show, watch, cancel and retry flows: jobs that wait for jobs.

    \b
    Examples:
      rota flows list --state failed
      rota flows show 12
      rota flows watch 12
      rota flows retry 12
    """


@flows.command("list")
@click.option(
    "--state",
    type=click.Choice([state.value for state in FlowState]),
    help="Only flows in this state, among the newest 10,000.",
)
@click.option("--name", metavar="NAME", type=Name("flow"), help="Only flows of this name.")
@page_options("flows", 10_000)
@urls_option
@json_option
@each_shard()
def list_(
    *,
    state: str | None,
    name: str | None,
    limit: int,
    after: int | None,
    url: str | None,
    as_json: bool,
) -> None:
    """List flows, the newest first.

    \b
    Examples:
      rota flows list --state running
      rota flows list --name import --limit 200 --json
    """
    from rota.cli import flow_text
    from rota.cli.database import database
    from rota.terminal import documents

    with database(url) as rota:
        records = rota.flows.list(limit=limit, before=after, name=name, state=state)
    if as_json:
        say_json({"flows": [documents.flow_summary(flow) for flow in records]})
        return
    rows = [flow_text.row(flow) for flow in records]
    table(flow_text.LIST, rows, nothing="There are no such flows.")
    say_page("flows", [flow.id for flow in records], limit)


@flows.command()
@click.argument("flow", metavar="ID", type=ID)
@click.option(
    "--svg",
    metavar="[FILE]",
    is_flag=False,
    flag_value="-",
    help="Draw the graph as a picture, SVG, into a file or to standard output.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=SHOWN_NODES,
    show_default=True,
    help="Show at most this many nodes, the first ones.",
)
@url_option
@json_option
def show(*, flow: int, svg: str | None, limit: int, url: str | None, as_json: bool) -> None:
    """Show a flow: each node below those that it waits for, with its state and jobs.

    A node that waits for several others stands below the last of them; the others name it behind an
    arrow. A chain of nodes continues downwards, without indentation.

    \b
    Examples:
      rota flows show 12
      rota flows show 12 --svg import.svg
      rota flows show 12 --svg > import.svg
    """
    from rota.cli import flow_text
    from rota.cli.database import database
    from rota.drawing.flow_picture import READ, picture
    from rota.terminal import documents

    if svg is not None and as_json:
        message = "--svg and --json exclude each other"
        raise click.UsageError(message)
    with database(url) as rota:
        graph = rota.flows.get(flow).graph(limit=max(limit, READ) if svg else limit)
    if svg is not None:
        _write(picture(graph), svg)
    elif as_json:
        say_json(documents.flow_graph(graph))
    else:
        flow_text.say_details(graph)
        if graph.more:
            of = flow_text.nodes(graph.flow)
            click.echo(f"(the first {limit:,} of {of} nodes; more with --limit)", err=True)


def _write(picture: str, file: str) -> None:
    if file == "-":
        click.echo(picture)
        return
    try:
        Path(file).write_text(picture + "\n", encoding="utf-8")
    except OSError as error:
        message = f"{file} cannot be written: {error.strerror}"
        raise Failure(message, FAILED) from error
    say(f"the picture is in {file}")


flows.add_command(watch)


@flows.command()
@ids_argument()
@url_option
@json_option
def cancel(*, ids: tuple[int, ...], url: str | None, as_json: bool) -> None:
    """Cancel flows: no node begins any more, waiting jobs are cancelled, running jobs are asked to stop.

    \b
    Example:
      rota flows cancel 12
    """
    from rota.cli import flow_text

    def act(handle: "FlowHandle") -> tuple[dict[str, Any], str, str]:
        done = handle.cancel()
        record = handle.record()
        document = {"cancelled": done, "state": record.state.value}
        if not done:
            return document, "", f"{flow_text.ended(record.state)} already"
        if record.state.ended:
            return document, f"is {record.state}", ""
        said = (
            f"is being cancelled; running jobs are asked to stop, see rota flows show {handle.id}"
        )
        return document, said, ""

    _each(ids, url, act, as_json=as_json)


@flows.command()
@ids_argument()
@url_option
@json_option
def retry(*, ids: tuple[int, ...], url: str | None, as_json: bool) -> None:
    """Retry what failed or was cancelled in flows; what waits for it begins anew, even if it ran.

    Other completed jobs stay as they are.

    \b
    Example:
      rota flows retry 12
    """
    from rota.cli import flow_text

    def act(handle: "FlowHandle") -> tuple[dict[str, Any], str, str]:
        before = handle.record()
        jobs = handle.retry()
        record = handle.record()
        document = {"jobs": jobs, "state": record.state.value}
        if not jobs and before.round == record.round:
            return (
                document,
                "",
                f"{flow_text.ended(record.state)}, and nothing in it is to be retried",
            )
        number = "1 job is" if jobs == 1 else f"{jobs:,} jobs are"
        return document, f"is {record.state}; {number} available again", ""

    _each(ids, url, act, as_json=as_json)


def _each(
    ids: tuple[int, ...],
    url: str | None,
    act: "Callable[[FlowHandle], tuple[Mapping[str, Any], str, str]]",
    *,
    as_json: bool,
) -> None:
    """Do something to each flow: it gives a document, what was done, and why it was not."""
    from rota.cli.database import database

    documents: dict[str, object] = {}
    missing, wrong = [], []
    with database(url) as rota:
        for one in dict.fromkeys(ids):
            try:
                document, done, why = act(rota.flows.get(one))
            except FlowNotFound:
                missing.append(one)
                wrong.append(f"flow {one} does not exist (its retention may be over)")
                continue
            documents[str(one)] = document
            if why:
                wrong.append(f"flow {one} {why}")
            elif not as_json:
                say(f"flow {one} {done}")
    if as_json:
        say_json({"flows": documents, "missing": missing})
    for message in wrong:
        complain(message)
    if wrong:
        raise click.exceptions.Exit(FAILED)
