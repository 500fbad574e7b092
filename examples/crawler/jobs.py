"""Each page is one job while it exists: it comes round again and again, but never exists twice."""

import re
from hashlib import sha256
from urllib.error import HTTPError
from urllib.request import urlopen

from rota import Again, Limit, Rota

rota = Rota()

LONGEST = 24 * 3600.0
"""Seconds after which a page that never changes, or has gone, is looked at again."""

TABLE = """
    CREATE TABLE IF NOT EXISTS page (url text PRIMARY KEY, digest text NOT NULL, pause real NOT NULL)
"""


@rota.task(unique="{host}{path}", limit=Limit("host:{host}", running=2), queue="crawl", timeout=30)
def visit(host: str, path: str, pause: float = 3600.0) -> Again:
    """Fetch a page, remember what it was like, and enqueue the pages that it links to.

    A page in which nothing is new comes round after twice the time.

    Args:
        host: A host, with its port if it has one.
        path: The page's path on the host.
        pause: Seconds after which a page that has changed comes round again.
    """
    url = f"{host}{path}"
    text = fetch(f"http://{url}")
    digest = sha256(text.encode()).hexdigest()
    with rota.transaction() as tx:
        known = tx.execute("SELECT digest, pause FROM page WHERE url = ?", [url]).fetchone()
        if not text:
            due = LONGEST
        elif known and known[0] == digest:
            due = min(2 * known[1], LONGEST)
        else:
            due = pause
        tx.execute("REPLACE INTO page VALUES (?, ?, ?)", [url, digest, due])
        # Pages that are jobs already are skipped, also where two pages link to one at the same
        # moment.
        links = sorted(set(re.findall(r'href="(/[^"#]*)', text)))
        visit.enqueue_many([(host, link, pause) for link in links], conn=tx)
    return Again(after=due)


def fetch(url: str) -> str:
    """The text of a page; empty if there is no such page."""
    try:
        with urlopen(url, timeout=10) as answer:  # noqa: S310 - http, as the caller says
            return str(answer.read().decode(errors="replace"))
    except HTTPError as error:
        with error:
            if error.code in {404, 410}:
                return ""
            raise
