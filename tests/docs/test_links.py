"""Links and paths on the pages lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, prose

LINK = re.compile(r"(?<!!)\[[^\]]+\]\((?P<target>[^)\s]+)\)")
PATH = re.compile(r"`(?P<path>(?:src|tests|docs|examples|\.ci)/[\w./*-]*)`")


def anchors(page: Path) -> set[str]:
    """What `#…` may name on a page: its headings, as GitHub spells them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    """Each link inside the repository leads to a file, and to a heading that is there."""
    for link in LINK.finditer(prose(page)):
        target = link["target"]
        if re.match(r"https?://", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths(page: Path) -> None:
    """Each file or folder of the repository that a page names is there."""
    for named in PATH.finditer(prose(page)):
        assert list(ROOT.glob(named["path"].rstrip("/"))), f"{page.name}: {named['path']}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_package_index(page: Path) -> None:
    """No page names the host of a package index: readers have their own."""
    addresses = r"index-url|find-links|https?://[^\s)]*(?:/simple|registry|packages)"
    assert re.findall(addresses, page.read_text(encoding="utf-8"), re.IGNORECASE) == []


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.is_relative_to(ROOT / "docs")],
    ids=lambda page: page.name,
)
def test_a_page_says_for_whom_it_is(page: Path) -> None:
    """Below its title each page has one line that says for whom it is, or for what."""
    title, blank, line, *_ = page.read_text(encoding="utf-8").splitlines()
    assert title.startswith("# ")
    assert not blank
    assert line.startswith("For ")
