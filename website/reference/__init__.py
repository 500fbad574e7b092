"""The reference, read from the code at each build of the site: no copying that could be forgotten.

`python` reads docstrings, `commands` the parser, `settings` both and the names of variables, `sql`
the comments of `schema.sql`, `metrics` the calls that make metrics. What has no words there is
`untold`, and fails a test.
"""

from website.reference import commands, metrics, python, settings, sql
from website.staging import Pages


def with_reference(pages: Pages) -> Pages:
    """The pages with those of the reference, which its first page lists."""
    made = python.pages() | commands.pages() | settings.pages() | sql.pages() | metrics.pages()
    rows = [f"- [{title(text)}]({name.rpartition('/')[2]}.md)" for name, text in made.items()]
    return pages | made | {"reference/index": "\n".join([pages["reference/index"], *rows, ""])}


def title(text: str) -> str:
    """A page's heading."""
    return text.partition("\n")[0].removeprefix("# ")


def untold() -> list[str]:
    """Names that users can meet, and that the reference has no words for."""
    return [
        *python.untold(), *commands.untold(), *settings.untold(), *sql.untold(), *metrics.untold()
    ]  # fmt: skip
