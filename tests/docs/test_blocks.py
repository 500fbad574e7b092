"""The examples on the pages work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Block, blocks

BIN = Path(sys.executable).parent


def with_blocks(database: str) -> list[Path]:
    """The pages that have something to run on that database."""

    def runs(block: Block) -> bool:
        alone = block.marks.keys().isdisjoint({"file", "from", "output"})
        return alone and block.language in {"python", "sh", "sql"} and block.runs_on(database)

    return [page for page in PAGES if any(runs(block) for block in blocks(page))]


def run_page(page: Path, database: str, folder: Path, **environment: str) -> None:
    """Run a page's blocks in a folder; fails with what they said."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("ROTA_")}
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    # As if the plugin's entry point was installed, also where it is not yet; and not all that are
    # installed here.
    plugins = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "pytest_rota,pytest_asyncio.plugin",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.run_page", str(page), database],
        cwd=folder,
        env={**inherited, "PATH": path, "PYTHONPATH": str(ROOT), **plugins, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", with_blocks("sqlite"), ids=lambda page: page.name)
def test_blocks_on_sqlite(page: Path, tmp_path: Path) -> None:
    """The blocks of a page run one after another, and print what the page says."""
    run_page(page, "sqlite", tmp_path)


@pytest.mark.large
@pytest.mark.parametrize("page", with_blocks("postgres"), ids=lambda page: page.name)
def test_blocks_on_postgres(page: Path, tmp_path: Path, postgres_url: str) -> None:
    """The blocks that need PostgreSQL run there, in a database with nothing but Rota's tables."""
    command = [str(BIN / "rota"), "migrate", "--url", postgres_url]
    subprocess.run(command, check=True, capture_output=True)
    run_page(page, "postgres", tmp_path, ROTA_DATABASE_URL=postgres_url)


def test_quoted_from_files() -> None:
    """Quotes from files agree with the files, word by word."""
    for page in PAGES:
        for block in blocks(page):
            if "from" in block.marks:
                source = (ROOT / block.marks["from"]).read_text(encoding="utf-8")
                where = f"{page.name}:{block.line}"
                assert block.text in source, f"{where} is not in {block.marks['from']}"
