"""From a URL to what libpq reads, and what is Rota's own in it."""

import re

from rota.errors import ConfigError
from rota.store.url import shown

LARGEST_PORT = 65535


def read_url(url: str) -> tuple[str, bool]:
    """The URL as libpq shall have it, and whether it says that there is a pooler.

    What is libpq's own stays as it was written: put together again from its parts, a URL without a
    host would have lost its slashes.
    """
    address = re.match(r"\w+://([^/?#]*)", url)
    hosts = address[1].rpartition("@")[2].split(",") if address else []
    readable = url.count("@", 0, address.end()) <= 1 if address else False
    if not readable or not all(map(_readable, hosts)):
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
        message = f"pooler={pooled[-1]} is not supported; use pooler=transaction, or leave it out"
        raise ConfigError(message)
    several = len(hosts) > 1 or any("," in value for name, _, value in parameters if name == "host")
    if several and not any(name == "target_session_attrs" for name, _, _ in parameters):
        # Of several hosts the one that can be written to is meant.
        parameters.append(("target_session_attrs", "=", "read-write"))
    kept = "&".join("".join(pieces) for pieces in parameters if pieces[0] != "pooler")
    return f"{head}?{kept}" if kept else head, bool(pooled)


def _readable(host: str) -> bool:
    """Whether this can be a host, an address in brackets, or nothing, with or without a port."""
    found = re.fullmatch(r"(?:\[[^\[\]]*\]|[^\[\]:]*)(?::(\d*))?", host)
    return found is not None and int(found[1] or 0) <= LARGEST_PORT
