"""Run the blocks of one page: `python -m tests.docs.run_page PAGE sqlite|postgres`.

Runs in the current folder. For PostgreSQL the database is the one that ROTA_DATABASE_URL names.
"""

import ast
import asyncio
import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
import types
from pathlib import Path

from tests.docs.pages import Block, blocks, says


class Page:
    """A page while it runs: its namespace, and what its last block printed."""

    def __init__(self, path: Path, database: str) -> None:
        self._path = path
        self._database = database
        self._module = types.ModuleType("page")
        self._printed = ""
        sys.modules["page"] = self._module

    def run(self, block: Block) -> None:
        """Do what the block and its marks ask for."""
        match block.language:
            case _ if "from" in block.marks:
                pass  # files run elsewhere
            case _ if "file" in block.marks:
                Path(block.marks["file"]).write_text(block.text, encoding="utf-8")
            case _ if "from" in block.marks:
                pass  # its file has tests of its own
            case "python":
                self._python(block)
            case "sh" if "run" in block.marks:
                self._shell(block)
            case "sql" if "postgres" in block.marks:
                self._sql(block)
            case "text" if "output" in block.marks:
                self._compare(block)

    def _python(self, block: Block) -> None:
        # Blank lines before it, so that tracebacks name the page's own lines.
        code = compile(
            "\n" * (block.line - 1) + self._with_url(block.text),
            str(self._path),
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        )
        out = io.StringIO()
        wanted = block.marks.get("raises")
        try:
            with contextlib.redirect_stdout(out):
                if code.co_flags & inspect.CO_COROUTINE:
                    asyncio.run(_awaited(code, vars(self._module)))
                else:
                    exec(code, vars(self._module))  # noqa: S102 - the documentation's own code
        except Exception as error:
            if type(error).__name__ != wanted:
                raise
            out.write(f"{wanted}: {error}")
        else:
            if wanted is not None:
                sys.exit(f"{self._path}:{block.line}: {wanted} was announced and did not come")
        self._printed = out.getvalue()

    def _shell(self, block: Block) -> None:
        done = subprocess.run(
            ["/bin/sh", "-e", "-c", self._with_url(block.text)],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        self._printed = done.stdout
        if done.returncode:
            sys.exit(f"{self._path}:{block.line}: exit status {done.returncode}")

    def _sql(self, block: Block) -> None:
        import psycopg

        with psycopg.connect(os.environ["ROTA_DATABASE_URL"]) as connection:
            connection.execute(block.text.encode())

    def _compare(self, block: Block) -> None:
        if not says(block, self._printed):
            sys.exit(f"{self._path}:{block.line}: what was printed is\n{self._printed}")

    def _with_url(self, text: str) -> str:
        if self._database != "postgres":
            return text
        rest = os.environ["ROTA_DATABASE_URL"].partition("://")[2]
        return re.sub(
            r"postgresql(\+\w+)?:///shop", lambda url: f"postgresql{url[1] or ''}://{rest}", text
        )


async def _awaited(code: types.CodeType, namespace: dict[str, object]) -> None:
    await types.FunctionType(code, namespace)()


def main() -> None:
    """Run a page."""
    path, database = Path(sys.argv[1]), sys.argv[2]
    page = Page(path, database)
    ran = False
    for block in blocks(path):
        # What is compared belongs to the block before it, wherever that ran.
        ran = ran if "output" in block.marks else block.runs_on(database)
        if ran:
            page.run(block)


if __name__ == "__main__":
    main()
