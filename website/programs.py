"""A page for each program in `examples/`, below the page that lists them."""

import ast
from pathlib import PurePosixPath

from website.repository import ROOT
from website.staging import Pages, listing, name_of


def with_programs(pages: Pages) -> Pages:
    """The pages, with those of the programs: `examples/README.md` says what each of them shows."""
    shown: Pages = {}
    for file in sorted((ROOT / "examples").rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        path = PurePosixPath(file.relative_to(ROOT))
        if "migrations" not in path.parts and ast.get_docstring(ast.parse(source)):
            title = path.relative_to("examples")
            shown[name_of(path)] = (
                f"# {title}\n\n`{path}` in the repository.\n\n````python\n{source}````\n"
            )
    below = sorted([*shown, *(name for name in pages if name.startswith("examples/"))])
    return pages | shown | {"examples": f"{pages['examples']}\n{listing('', below)}"}
