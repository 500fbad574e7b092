"""The reference of the schema on PostgreSQL, from the comments of `schema.sql`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from website.repository import ROOT
from website.staging import Pages

SCHEMA = ROOT / "src" / "rota" / "store" / "postgres" / "schema.sql"

HEAD = """# SQL

For whoever reads Rota's tables, or enqueues from SQL, on PostgreSQL. The two functions are for everyone, and the views
`rota.job` and `rota.cron` are for people; [Jobs from SQL](../guides/sql.md) explains them. The tables are Rota's own: look at them, but do not
write, and do not build on them, since they may change with any version. [The engine](../how/engine.md) explains what they are for.
"""

PUBLIC = ("rota.enqueue", "rota.signal", "rota.job", "rota.cron")
"""What users may call and read, first on the page."""

LINK = re.compile(r"docs/([\w/-]+)\.md")
"""A page that a comment names."""

PART = re.compile(
    r"PARTITION OF|INHERITS|^CREATE (?:UNIQUE )?INDEX|^CREATE SEQUENCE|^CREATE SCHEMA"
)


@dataclass(frozen=True, slots=True)
class Thing:
    """A table, a view or a function.

    Attributes:
        kind: `TABLE`, `VIEW` or `FUNCTION`.
        name: With its schema.
        says: The comment above it.
        code: Its definition, of which a view's and a function's body is left out.
        within: The heading of the schema's part.
    """

    kind: str
    name: str
    says: str
    code: str
    within: str


def pages() -> Pages:
    """One page."""
    found = {thing.name: thing for thing in things()}
    parts = [HEAD, *(section(found[name]) for name in PUBLIC)]
    heading = ""
    for thing in found.values():
        if thing.name not in PUBLIC:
            if thing.within != heading:
                heading = thing.within
                parts.append(f"## {heading}\n")
            parts.append(section(thing, level=3))
    return {"reference/sql": "\n".join(parts)}


def things() -> Iterator[Thing]:
    """All of them, as they are written."""
    text = SCHEMA.read_text(encoding="utf-8")
    stated = dict(re.findall(r"COMMENT ON \w+ (rota\.\w+) IS '((?:[^']|'')*)'", text))
    within, lines = "The schema", text.splitlines()
    comment: list[str] = []
    kept: list[str] = []  # above the sequences of a table, which have comments of their own
    for number, line in enumerate(lines):
        if title := re.match(r"-- ([A-Z][^-]*[^- ]) -{5,}$", line):
            within, comment, kept = title[1], [], []
        elif line.startswith("--"):
            comment.append(line.removeprefix("--").strip())
        elif line.startswith(("CREATE SEQUENCE", "SELECT setval")):
            kept, comment = kept or comment, []
        elif made := re.match(r"CREATE (TABLE|VIEW|FUNCTION) (rota\.\w+)", line):
            if not PART.search(line):
                said = [stated[made[2]].replace("''", "'")] if made[2] in stated else []
                words = LINK.sub(
                    r"[\1](../\1.md)", "\n\n".join([*said, " ".join([*kept, *comment])])
                )
                yield Thing(made[1], made[2], words.strip(), code(made[1], lines[number:]), within)
            comment, kept = [], []
        else:
            comment, kept = [], []


def code(kind: str, lines: list[str]) -> str:
    """The definition of what begins at the first of these lines."""
    match kind:
        case "TABLE":
            end = next(number for number, line in enumerate(lines) if line.startswith(")"))
            return "\n".join(lines[: end + 1])
        case "FUNCTION":
            end = next(number for number, line in enumerate(lines) if "LANGUAGE" in line)
            return "\n".join(lines[: end + 1]).partition(" LANGUAGE")[0] + ";"
        case _:
            return lines[0].partition(" AS")[0] + ";"


def section(thing: Thing, level: int = 2) -> str:
    """A thing with its words and, but for views, its definition."""
    shown = f"```postgresql\n{thing.code}\n```\n" if thing.kind != "VIEW" else ""
    return f"{'#' * level} {thing.name}\n\n{thing.kind.capitalize()}. {thing.says}\n\n{shown}"


def untold() -> list[str]:
    """Tables, views and functions without a comment."""
    return [thing.name for thing in things() if not thing.says]
