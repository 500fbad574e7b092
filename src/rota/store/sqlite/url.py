"""From a URL to the file it names."""

import os
from pathlib import Path
from urllib.parse import quote, unquote

from rota.errors import ConfigError

PREFIX = "sqlite://"


def database_path(path_or_url: str | os.PathLike[str]) -> str:
    """The absolute path of the database file.

    `sqlite:///rota.db` lies in the current folder, `sqlite:////srv/rota.db` is absolute; anything
    without `sqlite://` is a path. The current folder is looked at once, here.

    Raises:
        ConfigError: It names no file.
    """
    given = os.fspath(path_or_url)
    name = _from_url(given) if given.startswith(PREFIX) else given
    if ":memory:" in name or not name.strip("/"):
        message = (
            f"{given!r}: Rota needs a file, because several connections share it; "
            "use sqlite:///rota.db, or a file in a temporary folder for tests"
        )
        raise ConfigError(message)
    if "\0" in name or Path(name).is_dir():
        message = f"{given!r} names a folder or cannot be a file's name; use sqlite:///rota.db"
        raise ConfigError(message)
    return str(Path(name).resolve())


def url_of(path: str) -> str:
    """The URL of a file."""
    return f"{PREFIX}/{quote(path)}"


def _from_url(url: str) -> str:
    rest, question, options = url.removeprefix(PREFIX).partition("?")
    if question:
        message = f"{url!r}: SQLite URLs take no options; leave out ?{options}"
        raise ConfigError(message)
    if not rest.startswith("/"):
        message = (
            f"{url!r}: three slashes come before a file in the current folder (sqlite:///rota.db), "
            "four before an absolute path (sqlite:////srv/rota.db)"
        )
        raise ConfigError(message)
    return unquote(rest[1:])
