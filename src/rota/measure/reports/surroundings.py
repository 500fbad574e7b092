"""Where something was measured: machine, versions, commit, and the settings of the database."""

import importlib.metadata
import os
import platform
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from pathlib import Path

from rota.measure.reports.report import Surroundings, Value

SETTINGS = (
    "server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers",
    "wal_sync_method", "wal_level", "max_wal_size", "checkpoint_timeout", "autovacuum",
    "autovacuum_naptime", "data_checksums", "wal_log_hints",
)  # fmt: skip


def surroundings(versions: Mapping[str, str], settings: Mapping[str, str]) -> Surroundings:
    """This machine and checkout, with the versions and the settings of a database."""
    own = {"rota": importlib.metadata.version("rota"), "python": platform.python_version()}
    return Surroundings(
        machine=_machine(), versions={**own, **versions}, commit=_commit(), settings=settings
    )


def rota_surroundings(url: str) -> Surroundings:
    """The same for a server that Rota can use; `url` names any of its databases."""
    if url.startswith("sqlite"):
        return surroundings(
            {"sqlite": sqlite3.sqlite_version},
            {
                "journal_mode": "wal",
                "synchronous": "full to enqueue, normal to claim and settle",
            },
        )
    return surroundings({"psycopg": importlib.metadata.version("psycopg")}, postgres_settings(url))


def postgres_settings(url: str) -> dict[str, str]:
    """The settings of a PostgreSQL server that matter to measurements."""
    import psycopg

    with psycopg.connect(url) as connection:
        rows = connection.execute(
            # As SHOW writes them: pg_settings itself counts in pages.
            "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY (%s)"
            " ORDER BY name", [list(SETTINGS)],
        ).fetchall()  # fmt: skip
    return dict(rows)


def _machine() -> dict[str, Value]:
    """This machine."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": _memory(),
        "system": platform.platform(),
    }


def _commit() -> str | None:
    """The commit of Rota's checkout, if this is one."""
    git = shutil.which("git")
    here = Path(__file__).resolve().parents[4]
    if git is None or not (here / ".git").exists():
        return None
    said = subprocess.run(
        [git, "-C", str(here), "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return said.stdout.strip() or None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)
    except (AttributeError, OSError, ValueError):
        return None
