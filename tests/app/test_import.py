"""What `import rota` costs."""

import subprocess
import sys

HEAVY = ("aiosqlite", "asyncpg", "click", "psycopg", "pydantic", "rich", "sqlalchemy", "sqlite3")

SCRIPT = """
import sys, time
began = time.perf_counter()
import rota
print(time.perf_counter() - began, *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def imported() -> tuple[float, set[str]]:
    """Seconds that the import took in a fresh process, and what was loaded by it."""
    run = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    seconds, *modules = run.stdout.split()
    return float(seconds), set(modules)


def test_nothing_heavy_is_loaded() -> None:
    """`import rota` loads no driver and nothing that only the command line needs."""
    _, modules = imported()
    assert "rota" in modules
    assert modules.isdisjoint(HEAVY)


def test_the_import_is_quick() -> None:
    """`import rota` takes less than 300 ms, in the best of five runs."""
    assert min(imported()[0] for _ in range(5)) < 0.3
