"""Commands that do for each shard what they do for one database."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import click

from rota.errors import RotaError
from rota.model.states import State
from rota.terminal.advice import SHARD, addressed_within
from rota.terminal.exits import complain, exit_code
from rota.terminal.output import collecting, say, say_json, table

F = TypeVar("F", bound=Callable[..., Any])

Documents = Mapping[str, Any]
"""What a command says as JSON, by shard; `None` where it could say nothing."""


def each_shard(*, queues: bool = False) -> Callable[[F], F]:
    """The command for each shard that `ROTA_SHARDS` names, unless it was given a database.

    With `--json` there is one document, with that of each shard in it. A shard that cannot be used
    is said to be so, and the command goes on with the next one; it ends with the worst exit code of
    all.

    Args:
        queues: Whether it lists queues, which are added up then: it collects its document, too,
            where it prints a table.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(*, url: str | None, as_json: bool, **options: Any) -> None:
            from rota.store.shard_urls import from_environment

            urls = from_environment() if url is None else {}
            if not urls:
                function(url=url, as_json=as_json, **options)
                return
            _on_each(urls, functools.partial(function, **options), as_json=as_json, queues=queues)

        return cast("F", command)

    return decorate


def _on_each(
    urls: Mapping[str, str], function: Callable[..., None], *, as_json: bool, queues: bool
) -> None:
    context = click.get_current_context()
    documents: dict[str, Any] = {}
    worst = 0
    for name, url in urls.items():
        context.meta[SHARD] = name
        if not as_json:
            say(f"shard {name}", bold=True)
        with collecting() as said:
            end = _end(name, functools.partial(function, url=url, as_json=as_json))
        worst = max(worst, end)
        documents[name] = said[0] if said else None
        if not as_json:
            say()
    if as_json:
        say_json(
            {"shards": documents} | ({"sum": {"queues": added_up(documents)}} if queues else {})
        )
    elif queues:
        say("all shards", bold=True)
        rows = [
            [queue["name"], *(queue["jobs"][state.value] for state in State)]
            for queue in added_up(documents)
        ]
        table(
            ["queue", *(state.value for state in State)], rows, nothing="There are no queues yet."
        )
    context.exit(worst)


def _end(name: str, function: Callable[[], None]) -> int:
    """The exit code of what a command does on one shard."""
    try:
        function()
    except RotaError as error:
        code, message = exit_code(error), addressed_within(str(error))
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        code, message = error.exit_code, error.message
    else:
        return 0
    complain(f"shard {name}: {message}")
    return code


def added_up(documents: Documents) -> list[dict[str, Any]]:
    """The queues of all shards, by name: how many jobs each has, and the other figures of `rota top`."""
    every: dict[str, dict[str, Any]] = {}
    for document in documents.values():
        for queue in () if document is None else document["queues"]:
            known = every.setdefault(
                queue["name"], {"name": queue["name"], "jobs": dict.fromkeys(State, 0)}
            )
            for state, count in queue["jobs"].items():
                known["jobs"][state] += count
            for figure in ("in_per_second", "out_per_second"):
                if queue.get(figure) is not None:
                    known[figure] = known.get(figure, 0) + queue[figure]
    return [every[name] for name in sorted(every)]
