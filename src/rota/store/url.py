"""A database's URL as people may see it."""

import os
import re
from shlex import quote

VARIABLE = "ROTA_DATABASE_URL"
"""Where a program finds the URL that it was not given."""


def shown(url: str) -> str:
    """A URL fit for messages: without its password.

    Text that is not a URL may hold one, too: "host=127.0.0.1 password=secret", "ada:secret@host".
    """
    if "://" not in url:
        url = re.sub(r"(?is)(password\s*=).*", r"\1…", url)
    url = re.sub(r"(?<=[?&])((?:ssl)?password)=[^&]*", r"\1=…", url)
    head, at, tail = url.rpartition("@")
    if not at:
        return url
    scheme, separator, credentials = head.partition("://")
    if not separator:
        scheme, credentials = "", head
    return f"{scheme}{separator}{credentials.partition(':')[0]}@{tail}"


def migrating(url: str) -> str:
    """The command that makes or updates a database's tables; it finds the variable's by itself."""
    if url == os.environ.get(VARIABLE):
        return "rota migrate"
    return f"rota migrate --url {quote(shown(url))}"
