"""`rota queues set`, `unset` and `show`: the settings of a queue."""

from typing import Any

import click

from rota.cli.options import Duration, Name, url_option
from rota.errors import ConfigError
from rota.model import durations
from rota.model.job import MAX_ATTEMPTS, QueueRecord
from rota.model.queue_settings import (
    FOREVER,
    MOST_AT_ONCE,
    NAMES,
    NOTHING,
    QueueSettings,
    check_kept,
    sources,
)
from rota.model.states import FINISHED, State
from rota.terminal.output import harmless, json_option, say, say_json

STATES = (State.COMPLETED, State.CANCELLED, State.DISCARDED)

OPTIONS = {
    **{state.value: f"retention={state}" for state in STATES},
    "max_attempts": "max-attempts",
    "timeout": "timeout",
    "concurrency": "concurrency",
}
"""The names of the settings on the command line."""


class Keep(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A retention: DURATION, or STATE=DURATION; gives seconds by state."""

    name = "retention"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read what was written."""
        if isinstance(value, dict):
            return value
        state, equals, duration = str(value).rpartition("=")
        try:
            states = [check_kept(state, "retention")] if equals else STATES[:2]
            keep = _duration(duration)
        except ConfigError as error:
            self.fail(str(error).partition(": ")[2], param, ctx)
        if keep == FOREVER and states != [State.DISCARDED]:
            self.fail(
                "only discarded jobs can be kept forever: discarded=forever; the others must "
                "expire, or their space could not be freed",
                param,
                ctx,
            )
        return {state.value: keep for state in states}


def _duration(text: str) -> float:
    return FOREVER if text.strip() == "forever" else durations.parse(text, "retention")


class Setting(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """The name of a setting; gives the fields it stands for."""

    name = "setting"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read what was written."""
        if isinstance(value, tuple):
            return value
        names: dict[str, tuple[str, ...]]
        names = {option: (field,) for field, option in OPTIONS.items()}
        names["retention"] = tuple(state.value for state in STATES)
        if str(value) not in names:
            self.fail(f"{value!r} is not one of {', '.join(sorted(names))}", param, ctx)
        return names[str(value)]


@click.command("set")
@click.argument("name", type=Name("queue"))
@click.option(
    "--retention",
    "keeps",
    type=Keep(),
    metavar="[STATE=]DURATION",
    multiple=True,
    help="How long completed and cancelled jobs stay readable, such as 6h; or jobs in one state, "
    "such as discarded=30d. 0 keeps none. May be repeated.",
)
@click.option(
    "--max-attempts", type=int, help="How many times a job is tried before it is discarded."
)
@click.option("--timeout", type=Duration(), help="How long one attempt may take.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, MOST_AT_ONCE),
    help="How many jobs of the queue a worker runs at once.",
)
@url_option
@json_option
def set_(
    *,
    name: str,
    keeps: tuple[dict[str, float], ...],
    max_attempts: int | None,
    timeout: float | None,
    concurrency: int | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Change the settings of a queue, for jobs whose task and caller say nothing else.

    They override `rota.queue(…)` in the code. Attempts and timeout apply to jobs that are enqueued
    from now on, retention to jobs that end from now on, concurrency to all workers within
    seconds.

    \b
    Examples:
      rota queues set mail --max-attempts 3 --timeout 30s --concurrency 4
      rota queues set mail --retention 6h --retention discarded=30d
    """
    from rota.cli.database import database
    from rota.cli.queue_names import ask_for_queue

    kept = {state: keep for some in keeps for state, keep in some.items()}
    if not kept and (max_attempts, timeout, concurrency) == (None, None, None):
        message = "say what to set: --retention, --max-attempts, --timeout or --concurrency"
        raise click.UsageError(message)
    with database(url) as rota:
        known = {record.name for record in rota.admin.queues()}
        settings = rota.queue(name).set(
            retention=kept, max_attempts=max_attempts, timeout=timeout, concurrency=concurrency
        )
    _tell(name, settings, as_json=as_json, new=name not in known)
    ask_for_queue(name, known, "rota queues unset")


@click.command()
@click.argument("name", type=Name("queue"))
@click.argument("settings", metavar="[SETTING]...", type=Setting(), nargs=-1)
@url_option
@json_option
def unset(
    *, name: str, settings: tuple[tuple[str, ...], ...], url: str | None, as_json: bool
) -> None:
    """Remove settings of a queue: the code's settings apply again, else Rota's defaults.

    SETTING is retention, retention=discarded (or another state), max-attempts, timeout, or
    concurrency; without any, all of them.

    \b
    Examples:
      rota queues unset mail timeout concurrency
      rota queues unset mail
    """
    from rota.cli.database import database
    from rota.cli.queue_names import queue_record

    with database(url) as rota:
        queue_record(rota, name)
        left = rota.queue(name).unset(*(field for fields in settings for field in fields))
    _tell(name, left, as_json=as_json)


@click.command()
@click.argument("name", type=Name("queue"))
@click.option("--app", metavar="MODULE:APP", help="Also show what this app declares.")
@url_option
@json_option
def show(*, name: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Show a queue's settings, where each of them comes from, and how many jobs it has.

    Tasks and callers can override them. Settings in the code are shown only with --app.

    \b
    Examples:
      rota queues show mail
      rota queues show mail --app shop.tasks:rota
    """
    from rota import Rota
    from rota.cli.database import database
    from rota.cli.find_app import find_the_app
    from rota.cli.queue_names import queue_record

    layers = {"set": NOTHING, "code": NOTHING, "default": QueueSettings()}
    declared = False
    own = click.get_current_context().find_object(Rota)
    if known := app is not None or own is not None:
        found = find_the_app(app, own)
        declared = name in found.queues.declared
        layers["code"] = found.queues.declared.get(name, NOTHING)
        layers["default"] = found.queues.default
    layers["default"] = layers["default"].using(
        {"max_attempts": MAX_ATTEMPTS, "discarded": FOREVER}
    )
    with database(url) as rota:
        record = queue_record(rota, name, QueueRecord(name, paused=False) if declared else None)
        layers["set"] = rota.queue(name).settings()
    layer_of = sources(layers)
    if as_json:
        say_json(
            {
                "queue": name,
                "paused": record.paused,
                "jobs": {state.value: record.counts.get(state, 0) for state in State},
                "settings": {
                    field: {
                        "value": _json(getattr(layers[layer_of[field]], field)),
                        "from": layer_of[field],
                    }
                    for field in NAMES
                    if field in layer_of
                },
            }
        )
        return
    say(f"queue {harmless(name)}" + (" (paused)" if record.paused else ""), bold=True)
    counts = [f"{record.counts[state]:,} {state}" for state in State if record.counts.get(state)]
    say(f"  {'jobs':<24}{', '.join(counts) or 'none'}")
    origin = {
        "set": "set with `rota queues set`",
        "code": "declared in the code",
        "default": "default" if known else "unless the code says otherwise",
    }
    for field, option in OPTIONS.items():
        layer = layer_of.get(field)
        value = "a day" if field in FINISHED else "no limit"
        if layer is not None:
            value = _text(field, getattr(layers[layer], field))
        say(f"  {_title(option):<24}{value:<12}{origin[layer or 'default']}")


def _tell(name: str, settings: QueueSettings, *, as_json: bool, new: bool = False) -> None:
    """Print what is set for a queue now."""
    values = {field: getattr(settings, field) for field in NAMES}
    if as_json:
        say_json(
            {"queue": name, "new": new, "set": {key: _json(value) for key, value in values.items()}}
        )
        return
    texts = [
        f"{_title(OPTIONS[field])} {_text(field, value)}"
        for field, value in values.items()
        if value is not None
    ]
    note = "; it is new: it never had a job" if new else ""
    say(f"queue {harmless(name)}: {', '.join(texts) or 'nothing is set'}{note}")


def _title(option: str) -> str:
    kind, _, state = option.partition("=")
    return f"{kind} of {state}" if state else kind.replace("-", " ")


def _text(field: str, value: float) -> str:
    return durations.written(value) if field in FINISHED or field == "timeout" else f"{value:.0f}"


def _json(value: float | None) -> float | str | None:
    return "forever" if value == FOREVER else value
