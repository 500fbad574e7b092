"""The repository's pages as Sphinx reads them: each at its place on the site, with links that fit.

On the site a page of `docs/` stands at the top, and those of the repository's root below
`project/`; the README is the first page. A link to a program leads to a page that shows it, a link
to any other file to a copy of the file. Where a link leads to nothing that the site has, it stays
as it is, and Sphinx refuses it.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from website.navigation import Section
from website.repository import DOCS, ROOT

Pages = dict[str, str]
"""From a page's name on the site to its Markdown."""

FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>```+)[^\n]*\n.*?^(?P=indent)(?P=ticks)$", re.DOTALL | re.MULTILINE
)
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
MARK = re.compile(r"^ *<!--.*?-->\n", re.DOTALL | re.MULTILINE)
"""What tells the tests how to run a block."""

DIALECT = re.compile(r"(?<=```)sql(?=\n)")
"""PostgreSQL's quotes of dollars are no SQL of the standard."""

PLACES = {
    "README.md": "index.md",
    "examples": "examples.md",
    "examples/README.md": "examples.md",
    "LICENSE": "project/license.txt",
}
"""Files of the repository whose place on the site follows no rule."""


def staged() -> tuple[Pages, list[Path]]:
    """All pages of the repository, and the files that they lead to, which are to be copied."""
    pages: Pages = {}
    files: list[Path] = []
    sources = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    for source in sorted(sources):
        path = PurePosixPath(source.relative_to(ROOT))
        text, led_to = relinked(source.read_text(encoding="utf-8"), path)
        pages[name_of(place(path))] = text
        files += led_to
    return pages, sorted({file for file in files if file.is_file()})


def place(path: PurePosixPath) -> PurePosixPath:
    """Where a file of the repository is on the site, both as relative paths."""
    if (known := PLACES.get(str(path))) is not None:
        return PurePosixPath(known)
    if path.parts[0] == "docs":
        return path.relative_to("docs")
    if path.suffix == ".md" and len(path.parts) == 1:
        return PurePosixPath("project", path.name.lower())
    return path.with_suffix(".md") if path.suffix == ".py" else path


def name_of(path: PurePosixPath) -> str:
    """A page's name: its path without a suffix."""
    return str(path.with_suffix(""))


def relinked(text: str, page: PurePosixPath) -> tuple[str, list[Path]]:
    """A page's Markdown with links to the places of their targets, and the files among these."""
    files: list[Path] = []

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if target.startswith("#") or re.match(r"[a-z]+:", target):
            return found[0]
        name, mark, anchor = target.partition("#")
        leads = PurePosixPath(os.path.normpath(page.parent / name))
        to = os.path.relpath(place(leads), place(page).parent)
        file = ROOT / leads
        if found["picture"]:
            files.append(file)
        elif file.exists() and place(leads).suffix != ".md":
            # A folder is not on the site, and a file is to be opened, not to be downloaded.
            files.append(file)
            return f'<a href="{to}">{found["text"]}</a>' if file.is_file() else found["text"]
        return f"{found['picture']}[{found['text']}]({to}{mark}{anchor})"

    return outside_of_fences(text, lambda prose: LINK.sub(link, MARK.sub("", prose))), files


def outside_of_fences(text: str, change: Callable[[str], str]) -> str:
    """A text that is changed everywhere but in its fenced blocks."""
    parts, at = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[at : fence.start()]), DIALECT.sub("postgresql", fence[0])]
        at = fence.end()
    return "".join([*parts, change(text[at:])])


def listing(caption: str, names: list[str]) -> str:
    """A part of the site's listing, as MyST's directive."""
    title = f":caption: {caption}\n" if caption else ""
    return (
        f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n{title}\n"
        + "\n".join(f"/{name}" for name in names)
        + "\n```\n"
    )


def listed(pages: Pages, sections: tuple[Section, ...]) -> Pages:
    """The pages, of which the first one has the whole listing."""
    parts = [listing(section.title, list(section.pages)) for section in sections]
    return pages | {"index": "\n".join([pages["index"], *parts])}
