"""The documentation's site in a browser, read from files: narrow, light and dark, and its search."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser.axe import barriers
from tests.browser.chromium import NARROW, Chromium
from tests.docs.site import built

pytestmark = [pytest.mark.large, pytest.mark.timeout(900)]

SOME = ("index", "guides/limits", "how/built-on-it", "reference/workers", "reference/settings")
"""Pages that are looked at by rules; the others are made of the same things."""

TOO_WIDE = """
const width = document.documentElement.clientWidth;
const moves = (element) => ["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX);
const kept = (element) => { for (let e = element.parentElement; e; e = e.parentElement) { if (moves(e)) return true; } return false; };
const found = [...document.querySelectorAll("article *")].filter(
  (element) => element.getBoundingClientRect().right > width + 0.5 && !kept(element));
if (document.documentElement.scrollWidth > width) { found.unshift(document.body); }
return found.map((element) => element.outerHTML.slice(0, 120));
"""
"""What a reader would have to move the page for; tables and code move by themselves."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site."""
    return built(tmp_path_factory.mktemp("documentation") / "site")


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The site's address, while it is served: the checks' own script fetches styles."""
    handler = partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Leave it."""


def test_no_page_is_wider_than_a_telephone(browser: Chromium, site: Path) -> None:
    """At 360 pixels no page has to be moved sideways."""
    browser.appear(size=NARROW)
    pages = [page for page in sorted(site.rglob("*.html")) if page.stem != "report"]
    assert len(pages) > 60
    wide = []
    for page in pages:
        browser.open(page.as_uri())
        wide += [f"{page.relative_to(site)}: {what}" for what in browser.run(TOO_WIDE)]
    assert wide == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("page", SOME)
def test_pages_can_be_read(browser: Chromium, site: Path, page: str, *, dark: bool) -> None:
    """Nothing grave is in the way of anyone, in light and dark."""
    browser.appear(dark=dark)
    with served(site) as address:
        browser.open(f"{address}/{page}.html")
        found = barriers(browser)
        browser.leave()
    # Sphinx writes the lines of a long signature as a list of definitions without terms.
    assert [one for one in found if not one.startswith("definition-list ")] == []


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("debounce", "Unique jobs, and subjects that come round"),
        ("pgbouncer", "The database"),
        ("max_attempts", "rota.Context.max_attempts"),
    ],
)
def test_the_search_works_without_a_server(
    browser: Chromium, site: Path, query: str, first: str
) -> None:
    """A word is found where it is explained, a name where it is defined; nothing is fetched."""
    browser.open(f"{(site / 'search.html').as_uri()}?q={query}")
    browser.until(lambda: re.search(r"found \w+ pages?", browser.text()), "results")
    found = [one.text for one in browser.all("#search-results li a")]
    assert any(first in one for one in found[:5]), found
