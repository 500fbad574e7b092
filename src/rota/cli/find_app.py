"""From MODULE:APP on the command line, or in a variable, to the app."""

import importlib
import os
import sys
from collections.abc import Sequence
from traceback import extract_tb
from types import ModuleType

import click

from rota import Rota
from rota.app.shards import Shards
from rota.errors import RotaError
from rota.terminal.advice import SHARD
from rota.terminal.exits import USAGE, Failure

APP_VARIABLE = "ROTA_APP"
"""The environment variable that names the apps, where the command line does not."""


App = Rota | Shards
"""An app with one database, or with several."""


def find_apps(targets: Sequence[str], own: App | None = None) -> list[App]:
    """The apps that are named, after the calling program's own; else those that ROTA_APP names.

    Raises:
        Failure: There is none, or one of them cannot be found.
    """
    if targets or own is not None:
        return [*([] if own is None else [own]), *map(find_app, targets)]
    named = _in_variable()
    if not named:
        message = (
            "name the app: for `rota = Rota()` in shop/tasks.py it is shop.tasks:rota; several can be named, here or "
            f"in the variable {APP_VARIABLE}, separated by spaces"
        )
        raise Failure(message, USAGE)
    return [_find_in_variable(name) for name in named]


def find_the_app(target: str | None, own: App | None = None) -> Rota:
    """The app that `--app` names, else that of the calling program, else the one that ROTA_APP names.

    Of an app with several databases it is the shard that `--shard` names.

    Raises:
        Failure: There is none, or ROTA_APP names several; or it is not said which shard.
    """
    app = _find_the_app(target, own)
    if isinstance(app, Rota):
        return app
    name = click.get_current_context().meta.get(SHARD)
    if name is None or name not in app:
        message = f"this app has several databases; choose one with --shard: {', '.join(app)}"
        raise Failure(message, USAGE)
    return app[name]


def _find_the_app(target: str | None, own: App | None) -> App:
    if target is not None:
        return find_app(target)
    if own is not None:
        return own
    named = _in_variable()
    if len(named) == 1:
        return _find_in_variable(named[0])
    message = "give --app MODULE:APP: only the app knows its tasks and their args"
    if named:
        message = f"{APP_VARIABLE} names several apps ({', '.join(named)}); say which one has the task with --app"
    raise Failure(message, USAGE)


def _in_variable() -> list[str]:
    return os.environ.get(APP_VARIABLE, "").split()


def _find_in_variable(target: str) -> App:
    try:
        return find_app(target)
    except Failure as failure:
        message = f"{APP_VARIABLE}: {failure.message}"
        raise Failure(message, failure.exit_code) from failure


def find_app(target: str) -> App:
    """Import MODULE and take APP from it; without APP the module's only app.

    The current folder is searched first, as `python -m` does.

    Raises:
        Failure: There is no such module or app, or the module cannot be imported.
    """
    name, colon, path = target.partition(":")
    if not name or (colon and not path) or name.startswith("."):
        message = f"{target!r} is not MODULE:APP; for shop/tasks.py it is shop.tasks:rota"
        raise Failure(message, USAGE)
    module = _import(name)
    if not colon:
        return _only_app(module)
    found: object = module
    for part in path.split("."):
        if not hasattr(found, part):
            message = f"{name} has no {path!r}{_list(module)}"
            raise Failure(message)
        found = getattr(found, part)
    if not isinstance(found, App):
        kind = type(found).__name__
        message = f"{target} is a {kind}, not a rota.Rota{_list(module)}"
        raise Failure(message)
    return found


def _import(name: str) -> ModuleType:
    here = os.getcwd()  # noqa: PTH109 - as sys.path has it
    if sys.path[0] not in {"", here}:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        message = (
            f"there is no module {error.name!r}; run this in the folder that has it, "
            "or install its package"
        )
        if (module := name.removesuffix(".py").replace("/", ".")) != name:
            message = f"{name!r} is a file, not a module; write {module}"
        raise Failure(message) from error
    except RotaError:
        raise
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> Failure:
    """The error and its line; with -v the traceback has been logged."""
    where = extract_tb(error.__traceback__)[-1]
    lineno = getattr(error, "lineno", None) or where.lineno
    filename = getattr(error, "filename", None) or where.filename
    return Failure(
        f"{name} cannot be imported: {type(error).__name__}: {error} ({filename}, line {lineno})"
    )


def _apps(module: ModuleType) -> dict[str, App]:
    """The apps of a module, each by its first name."""
    apps: dict[str, App] = {}
    for name, value in vars(module).items():
        if isinstance(value, App) and all(value is not other for other in apps.values()):
            apps[name] = value
    return apps


def _only_app(module: ModuleType) -> App:
    apps = _apps(module)
    if len(apps) == 1:
        return next(iter(apps.values()))
    if not apps:
        message = f"{module.__name__} has no app; create one there: rota = Rota()"
        raise Failure(message)
    message = f"{module.__name__} has several apps: say which{_list(module)}"
    raise Failure(message)


def _list(module: ModuleType) -> str:
    targets = ", ".join(f"{module.__name__}:{name}" for name in _apps(module))
    return f"; its apps are {targets}" if targets else ""
