"""The databases of an app that has several, each with its shard's name."""

import os
import re
from collections.abc import Mapping

from rota.errors import ConfigError
from rota.store.url import shown

VARIABLE = "ROTA_SHARDS"
"""Where a program finds the shards that it was not given: `eu=postgresql://… us=postgresql://…`."""


def from_environment() -> dict[str, str]:
    """The databases that `ROTA_SHARDS` names, by the names of their shards; none without it.

    Raises:
        ConfigError: It cannot be read.
    """
    urls: dict[str, str] = {}
    for each in os.environ.get(VARIABLE, "").split():
        name, equals, url = each.partition("=")
        if not equals or name in urls:
            why = "a repeated name" if equals else "not NAME=URL"
            message = (
                f"{VARIABLE}: {shown(each)!r} is {why}; write eu=postgresql://… us=postgresql://…"
            )
            raise ConfigError(message)
        urls[name] = url
    return urls


def checked(urls: Mapping[str, str]) -> dict[str, str]:
    """The shards that were given.

    Raises:
        ConfigError: There is none, a name cannot be used, or two have one URL.
    """
    if not urls:
        message = (
            f'shards need a name and a URL each: Rota.shards({{"eu": …, "us": …}}), or {VARIABLE}'
        )
        raise ConfigError(message)
    for name in urls:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,50}", str(name)):
            message = f"shard {name!r}: a name consists of up to 50 letters, digits, dots, underscores and hyphens"
            raise ConfigError(message)
    if len(set(urls.values())) < len(urls):
        message = "two shards have the same URL; give each a database of its own"
        raise ConfigError(message)
    return dict(urls)
