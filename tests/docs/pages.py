"""The documentation as the tests see it: pages, and the fenced blocks in them.

A page's blocks run from top to bottom in one namespace and one temporary folder. What is special
about a block stands in an HTML comment on the line above its fence, several marks with commas:

    (nothing)            python: run on SQLite; other languages: not run
    <!-- run -->         sh: run in the page's folder
    <!-- file shop.py -->      written to that file instead of being run
    <!-- output -->      text: what the block before it has printed; … stands for anything
    <!-- raises ArgsError -->  python: ends with that exception
    <!-- postgres -->    runs on PostgreSQL instead of SQLite: python, and sql
    <!-- both -->        runs on both
    <!-- from FILE -->   quoted from a file of the repository, word by word; not run

`postgresql:///shop`, with or without `+psycopg` or `+asyncpg`, becomes the URL of the test's own
database. `await` is possible at the top level of a block.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
)

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE
)
MARKS = re.compile(r"<!-- (?P<marks>.+) -->\n\s*$")


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        line: Of the page, on which its text begins.
        marks: From each mark's first word to the rest.
    """

    line: int
    language: str
    marks: dict[str, str]
    text: str

    def runs_on(self, database: str) -> bool:
        """Whether the block is part of the page's run on that kind of database."""
        if not self.marks.keys().isdisjoint({"file", "both"}):
            return True
        return ("postgres" in self.marks) is (database == "postgres")


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in their order."""
    source = page.read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(source):
        marks = MARKS.search(source[: fence.start()])
        words = [] if marks is None else marks["marks"].split(", ")
        found.append(
            Block(
                line=source.count("\n", 0, fence.start("text")) + 1,
                language=fence["language"],
                marks={first: rest for first, _, rest in (word.partition(" ") for word in words)},
                text=fence["text"],
            )
        )
    return found


def says(block: Block, printed: str) -> bool:
    """Whether a block shows what was printed; … in it stands for anything."""
    pattern = ".*?".join(re.escape(part) for part in block.text.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def everything() -> str:
    """All pages, one after another."""
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
