"""URLs of the databases of one server."""

from urllib.parse import quote, urlsplit


def of_database(server: str, name: str) -> str:
    """The URL of another database on the server of this URL.

    Put together by hand: `urlunsplit` leaves out the `//` where no host is named, as in
    `postgresql:///shop`.
    """
    parts = urlsplit(server)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}/{quote(name, safe='')}{query}"
