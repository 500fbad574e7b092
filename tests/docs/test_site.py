"""The documentation's site: it is built without a warning, and needs nothing that is not in it."""

import re
import subprocess
import sys
import types
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import rota
from rota import errors, events
from tests.docs.pages import ROOT
from tests.docs.site import built


class Html(HTMLParser):
    """A page as it was built.

    Attributes:
        ids: What a link's `#…` may name.
        links: Where the page's links lead.
        loaded: What a browser fetches to show it.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the element names, and where it leads."""
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.ids.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") in {"stylesheet", "icon", "preload"}:
            self.loaded.append(values["href"])
        elif "src" in values:
            self.loaded.append(values["src"])


# A build takes half a minute of a processor, as long as a thousand other tests.
pytestmark = [pytest.mark.large, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by the command."""
    return built(tmp_path_factory.mktemp("documentation") / "site")


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    """Its pages."""
    return {
        file: Html(file)
        for file in sorted(site.rglob("*.html"))
        if "lab" not in file.parts or file.stem != "report"
    }


def inside(pages: dict[Path, Html]) -> Iterator[tuple[Path, Path, str]]:
    """Each link within the site: its page, the file it leads to, and the place in it."""
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if not parts.scheme:
                to = (file.parent / unquote(parts.path)).resolve() if parts.path else file
                yield file, to, unquote(parts.fragment)


def test_every_link_leads_somewhere(pages: dict[Path, Html]) -> None:
    """Each link of the built site leads to a file of it, and to a place that is there."""
    broken = [
        f"{file.name}: {to}#{anchor}"
        for file, to, anchor in inside(pages)
        if not to.is_file() or (anchor and to in pages and anchor not in pages[to].ids)
    ]
    assert broken == []
    assert len(pages) > 40


def test_nothing_comes_from_elsewhere(site: Path, pages: dict[Path, Html]) -> None:
    """Pages, scripts and styles fetch nothing from another host, and pages nothing that is not there."""
    for file, page in pages.items():
        for name in page.loaded:
            parts = urlsplit(name)
            assert not parts.netloc, f"{file.name}: {name}"
            assert parts.scheme == "data" or (file.parent / parts.path).exists(), (
                f"{file.name}: {name}"
            )
    for style in site.rglob("*.css"):
        assert re.findall(r"url\(['\"]?(?:https?:)?//|@import", style.read_text("utf-8")) == []


def test_the_search_needs_no_server(site: Path) -> None:
    """The index is a script, which browsers also load from a file, and knows the pages' words."""
    assert 'src="searchindex.js"' in (site / "search.html").read_text(encoding="utf-8")
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")
    assert "holes" in index


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[there](guides/absent.md)", "absent.md"),
        ("[there](guides/tasks.md#absent)", "absent"),
        ("[there](guides/tasks.md#tasks)", ""),
    ],
)
def test_a_broken_link_fails_the_build(tmp_path: Path, line: str, says: str) -> None:
    """A page that is not there, or a heading, ends the build with status 1 and the link's name."""
    program = (
        "import sys; from pathlib import Path; from website.building import write_html;"
        f"pages = {{'index': {line!r} + '\\n\\n# Rota\\n', 'guides/tasks': '---\\norphan: true\\n---\\n# Tasks\\n'}};"
        f"sys.exit(write_html(Path({str(tmp_path)!r}) / 'site', pages))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == bool(says), done.stderr
    assert says in done.stderr


def test_public_names_have_places(pages: dict[Path, Html]) -> None:
    """Each public name, error and event has a place in the reference, which a link can name."""
    there = {place for page in pages.values() for place in page.ids}
    names = [f"rota.{name}" for name in rota.__all__ if not hasattr(errors, name)]
    names += [
        f"rota.{room.__name__.rpartition('.')[2]}.{name}"
        for room in (errors, events)
        for name in classes(room)
    ]
    assert [name for name in names if name not in there] == []
    assert {
        "rota.Rota.task",
        "rota.jobs.cancel",
        "rota.cron",
        "rota.Context.step",
        "rota-worker",
    } <= there


def classes(room: types.ModuleType) -> list[str]:
    """The public classes that a module defines."""
    return [
        name for name, one in vars(room).items()
        if isinstance(one, type) and one.__module__ == room.__name__ and not name.startswith("_")
    ]  # fmt: skip
