"""Acting on all jobs that match: what the commands `rota jobs retry`, `cancel` and `delete` share."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from rota.cli.options import Name
from rota.model.states import State
from rota.terminal.output import say, say_json

if TYPE_CHECKING:
    from rota import Rota
    from rota.app.bulk import Bulk
    from rota.model.flow import Membership
    from rota.model.job import JobId

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = (
    click.option("--state", type=click.Choice([state.value for state in State]), help="All jobs in this state."),
    click.option("--queue", metavar="NAME", type=Name("queue"), help="All jobs of this queue."),
    click.option("--task", metavar="NAME", type=Name("task"), help="All jobs of this task."),
    click.option(
        "--subject", metavar="KEY",
        help="All jobs with this unique key; a * at the end stands for any text.",
    ),
    click.option("--arg", metavar="NAME=VALUE", help="All jobs with this arg, such as order_id=42."),
    click.option("--dry-run", is_flag=True, help="Say how many jobs match, and do nothing."),
)  # fmt: skip


class Acted(NamedTuple):
    """The changed jobs, with their states now, and those that are left to a retry of their flow."""

    changed: "dict[JobId, State]"
    left: "dict[JobId, Membership]"


def found_options(function: F) -> F:
    """What jobs are found by, instead of their ids."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def given(
    ids: tuple[int, ...], found_by: Mapping[str, str | None], *, dry_run: bool
) -> dict[str, str]:
    """What jobs are found by; nothing where ids are given.

    Raises:
        UsageError: Neither or both are given.
    """
    said = {name: text for name, text in found_by.items() if text is not None}
    if bool(ids) is bool(said):
        message = "give either job ids or filters: --state, --queue, --task, --subject, --arg"
        raise click.UsageError(message)
    if dry_run and not said:
        message = "--dry-run needs --state, --queue, --task, --subject or --arg"
        raise click.UsageError(message)
    return said


def act_on_found(
    rota: "Rota",
    action: str,
    found_by: Mapping[str, str],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    alone: bool = False,
) -> Acted | None:
    """Act on all jobs that match. `None`: only the number was told.

    With `alone`, jobs are retried that would be left to a retry of their flow.

    Raises:
        Failure: The user does not agree.
        ConfigError: Jobs in that state cannot be acted on so, or the arg cannot be read.
    """
    from rota.app.bulk import KINDS, Bulk
    from rota.app.matching import matching
    from rota.cli.asking import ask

    kind = KINDS[action]
    until = rota.database.run(rota.database.store.last_job())
    bulk = Bulk(rota, kind, matching(found_by), until, alone=alone)
    if dry_run or not yes:
        count = bulk.count()
        if dry_run:
            if as_json:
                say_json(count._asdict())
            else:
                say(f"{count} would be {kind.done}")
            return None
        if count.jobs or not count.exact:
            ask(f"{action.capitalize()} {count}?", f"nothing was {kind.done}")
    return _act(rota, bulk)


def _act(rota: "Rota", bulk: "Bulk") -> Acted:
    from rota.terminal.bar import bar

    changed, left = acted = Acted({}, {})
    with bar() as progress:
        progress.begin("jobs", 100)
        for page in bulk.pages():
            if page.jobs:
                done = rota.database.run(bulk.act(page))
                changed.update(done if isinstance(done, dict) else dict.fromkeys(done, page.state))
                left.update(bulk.left(page, len(done)))
            progress.at(100 * page.share)
    return acted
