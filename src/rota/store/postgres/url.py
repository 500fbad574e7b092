"""From a URL to what libpq reads, and what is Rota's own in it."""

import urllib.parse

from rota.errors import ConfigError
from rota.store.url import shown


def read_url(url: str) -> tuple[str, bool]:
    """The URL as libpq shall have it, and whether it says that there is a pooler.

    What is libpq's own stays as it was written: put together again from its parts, a URL without a
    host would have lost its slashes.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        _ = parts.port
        readable = parts.netloc.count("@") <= 1
    except ValueError:
        readable = False
    if not readable:
        # Without the cause, which may quote a part of the password that was taken for a port.
        message = (
            f"{shown(url)!r} cannot be read as a URL: a port is a number, and in a password write "
            "%2F for /, %3F for ?, %23 for #, %40 for @, %5B for [, %5D for ]"
        )
        raise ConfigError(message)
    head, _, query = url.partition("?")
    parameters = [parameter.partition("=") for parameter in query.split("&") if parameter]
    pooled = [value for name, _, value in parameters if name == "pooler"]
    if pooled not in ([], ["transaction"]):
        message = f"pooler={pooled[-1]} is not possible; use pooler=transaction, or leave it out"
        raise ConfigError(message)
    kept = "&".join("".join(pieces) for pieces in parameters if pieces[0] != "pooler")
    return f"{head}?{kept}" if kept else head, bool(pooled)
