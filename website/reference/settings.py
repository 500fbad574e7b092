"""The reference of settings: options of the app, tasks, queues and workers; the variables read."""

import re
from collections.abc import Iterator

import click
import griffe

from rota.cli.worker import worker
from website.reference.docstrings import parameters
from website.reference.package import find, package
from website.reference.signatures import constant
from website.staging import Pages

HEAD = """# Settings

For whoever sets something up: every option of an app, a task, a queue and a worker, with its default, and every variable of the environment.
Durations are seconds, or a `timedelta`; sizes are bytes. Which setting counts where several are made: [queues](../guides/queues.md#which-setting-counts).
"""

OPTIONS = (
    # heading, what takes the options, a sentence
    ("An app", "rota.app.app.Rota.__init__", "rota.app.app.Rota", "Options of `Rota(…)`."),
    (
        "A task", "rota.app.declares_tasks.DeclaresTasks.task", "rota.app.declares_tasks.DeclaresTasks.task",
        "Options of `@rota.task(…)`.",
    ),
    ("One enqueue", "rota.app.task.Task.using", "rota.app.task.Task.using", "Options of `task.using(…)`, which hold for its jobs alone."),
    ("A queue", "rota.app.app.Rota.queue", "rota.app.app.Rota.queue", "Options of `rota.queue(…)`; `rota queues set` sets the same in the database."),
    ("A cron entry", "rota.app.crontab.Crontab.__call__", "rota.app.crontab.Crontab.__call__", "Options of `@rota.cron(…)`."),
)  # fmt: skip

INNER = {"ROTA_DEMO_URL", "ROTA_TEST_POSTGRES_BIN"}
"""Variables between Rota's own processes, and those of its tests."""

VARIABLE = re.compile(r"'(ROTA_[A-Z_]+)'")


def pages() -> Pages:
    """One page."""
    return {"reference/settings": "\n".join([HEAD, *sections(), worker_options(), variables()])}


def sections() -> Iterator[str]:
    """The options that stand in the code of an app."""
    for heading, function, words, says in OPTIONS:
        told = parameters(find(words))
        rows = [
            row(one.name, told[one.name], one.default)
            for one in signature(function)
            if one.name in told and one.name != "function"
        ]
        yield f"## {heading}\n\n{says}\n\n| option | |\n|---|---|\n" + "\n".join(rows) + "\n"


def row(name: str, text: str, default: str | griffe.Expr | None, more: str = "") -> str:
    """An option, what it means, and what holds without it."""
    without = (
        "" if default is None or str(default) == "None" else f" Default: `{constant(default)}`."
    )
    return f"| `{name}` | {text}{without.replace('|', '&#124;')}{more} |"


def signature(path: str) -> list[griffe.Parameter]:
    """The parameters of a function, without its object."""
    found = find(path)
    return list(found.parameters)[1:] if isinstance(found, griffe.Function) else []


def worker_options() -> str:
    """A worker's settings beside the options of the command."""
    config = find("rota.config.WorkerConfig")
    spelled = {each.name: each.opts[0] for each in worker.params if isinstance(each, click.Option)}
    spelled |= {"queues": "--queue"}
    rows = []
    for name, text in parameters(config).items():
        field = config.members[name]
        default = field.value if isinstance(field, griffe.Attribute) else None
        option = f" On the command line: `{spelled[name]}`." if name in spelled else ""
        rows.append(row(name, text, default, option))
    return (
        "## A worker\n\nFields of `WorkerConfig`, and [options of `rota worker`](commands.md#rota-worker).\n\n"
        "| field | |\n|---|---|\n" + "\n".join(rows) + "\n"
    )


def constants(module: griffe.Module | None = None) -> Iterator[griffe.Attribute]:
    """The constants that hold the name of a variable, in all modules."""
    here = module or package()
    for member in here.members.values():
        if isinstance(member, griffe.Module):
            yield from constants(member)
        elif isinstance(member, griffe.Attribute) and VARIABLE.fullmatch(str(member.value)):
            yield member


def variables() -> str:
    """The variables, each once, with all that is said about it."""
    told: dict[str, list[str]] = {}
    for each in constants():
        name = str(each.value).strip("'")
        if name not in INNER and each.docstring and "measure" not in each.path:
            told.setdefault(name, []).append(each.docstring.value.replace("|", "\\|"))
    rows = [
        f"| `{name}` | {' '.join(dict.fromkeys(texts))} |" for name, texts in sorted(told.items())
    ]
    return "## Variables of the environment\n\n| variable | |\n|---|---|\n" + "\n".join(rows) + "\n"


def untold() -> list[str]:
    """Options without a word, and variables that no constant explains."""
    silent = [
        f"{heading}: {one.name}" for heading, function, words, _ in OPTIONS for one in signature(function)
        if one.name not in parameters(find(words)) and one.name not in {"function", "conn", "unknown"}
    ]  # fmt: skip
    config = find("rota.config.WorkerConfig")
    silent += [
        name for name, each in config.members.items()
        if isinstance(each, griffe.Attribute) and "instance-attribute" in each.labels and name not in parameters(config)
    ]  # fmt: skip
    return silent + [
        str(each.value)
        for each in constants()
        if not each.docstring and str(each.value).strip("'") not in INNER
    ]
