"""From the repository to HTML: Sphinx, with MyST for Markdown and Furo for the looks.

Every warning is an error: a link or an anchor that leads nowhere, a page that no listing has, a
block that cannot be highlighted. The site asks no other host for anything, and its search needs no
server: the index is a script.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from sphinx.application import Sphinx

from website.navigation import SECTIONS
from website.programs import with_programs
from website.reference import with_reference
from website.repository import ROOT
from website.staging import Pages, listed, place, staged

PICTURES = {".svg", ".png", ".webp"}


def build(target: Path) -> int:
    """Build the site into a folder.

    Returns:
        An exit status: 1 where there was a warning, which was printed.
    """
    pages, files = staged()
    return write_html(target, listed(with_reference(with_programs(pages)), SECTIONS), files)


def write_html(target: Path, pages: Pages, files: Iterable[Path] = ()) -> int:
    """Make HTML of pages, with the files that they lead to.

    Beside it there are its sources and what Sphinx remembers of them.

    Returns:
        An exit status: 1 where there was a warning, which was printed.
    """
    source = target.with_name(f"{target.name}-source")
    write(source, pages)
    for file in files:
        # Pictures come to the site by way of Sphinx.
        copy(file, source if file.suffix in PICTURES else target)
    app = Sphinx(
        srcdir=source,
        confdir=Path(__file__).parent,
        outdir=target,
        doctreedir=target.with_name(f"{target.name}-trees"),
        buildername="html",
        status=None,
        warningiserror=True,
    )
    app.build()
    for page in target.rglob("*.html"):
        make_accessible(page)
    return app.statuscode


def make_accessible(page: Path) -> None:
    """What the theme omits: heading levels in the listing, and code that keys can move sideways."""
    text = page.read_text(encoding="utf-8")
    better = text.replace('role="heading">', 'role="heading" aria-level="2">')
    better = better.replace("<pre>", '<pre tabindex="0">')
    if better != text:
        page.write_text(better, encoding="utf-8")


def write(folder: Path, pages: Pages) -> None:
    """Make the folder hold these pages and no others.

    What has not changed is not written, so that Sphinx leaves it alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {folder / f"{name}.md": text for name, text in pages.items()}
    for old in set(folder.rglob("*.md")) - wanted.keys():
        old.unlink()
    for file, text in wanted.items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


def copy(file: Path, folder: Path) -> None:
    """Copy a file of the repository to its place in a folder."""
    copied = folder / place(PurePosixPath(file.relative_to(ROOT)))
    copied.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, copied)
