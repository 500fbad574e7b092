"""What every report says besides its figures: machine, versions, settings."""

import importlib.metadata
import os
import platform
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SETTINGS = (
    "server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers",
    "wal_sync_method", "max_wal_size", "autovacuum",
)  # fmt: skip


def surroundings(url: str) -> dict[str, Any]:
    """Machine, versions and settings, as far as they can be found out."""
    return {
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": platform.platform(),
        },
        "versions": {
            "rota": importlib.metadata.version("rota"),
            "commit": _commit(),
            "python": platform.python_version(),
            **_driver(url),
        },
        "settings": _settings(url),
    }


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """The median and the tail of some durations, in milliseconds."""
    ordered = sorted(seconds)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000, 3)

    return {
        "p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99), "max_ms": at(1.0),
    }  # fmt: skip


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    git = shutil.which("git")
    here = Path(__file__).resolve().parents[3]
    if git is None or not (here / ".git").exists():
        return None
    said = subprocess.run(
        [git, "-C", str(here), "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return said.stdout.strip() or None


def _driver(url: str) -> dict[str, str]:
    if url.startswith("sqlite"):
        return {"sqlite": sqlite3.sqlite_version}
    return {"psycopg": importlib.metadata.version("psycopg")}


def _settings(url: str) -> dict[str, str]:
    if url.startswith("sqlite"):
        return {"journal_mode": "wal", "synchronous": "full to enqueue, normal to claim and settle"}
    import psycopg

    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT name, setting || coalesce(' ' || unit, '') FROM pg_settings"
            " WHERE name = ANY (%s)", [list(SETTINGS)],
        ).fetchall()  # fmt: skip
    return dict(rows)
