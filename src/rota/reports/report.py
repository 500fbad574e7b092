"""The form of a benchmark's answer: what JSON, the table and the HTML page all show.

A benchmark returns a `Result`; `report` adds who measured, where, when and with which settings.
"""

import importlib.metadata
import os
import platform
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

Value: TypeAlias = float | int | str | bool | None

Figures: TypeAlias = "Mapping[str, Value | Figures]"
"""Numbers under names that end in their unit where it is not plain; groups may nest."""

SETTINGS = (
    "server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers",
    "wal_sync_method", "wal_level", "max_wal_size", "checkpoint_timeout", "autovacuum",
    "autovacuum_naptime", "data_checksums", "wal_log_hints",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Series:
    """What was measured again and again: `y` in `unit`, at `x` in `x_unit`.

    A `None` in `y` means that there was nothing to measure in that interval.
    """

    unit: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    x_unit: str = "s"


@dataclass(frozen=True, slots=True)
class Lines:
    """A chart of some of the report's series. The title says what one should see."""

    title: str
    x: str
    y: str
    series: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """A chart that compares: for each label one bar of each group."""

    title: str
    y: str
    groups: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a benchmark found out. `partial` says that it was interrupted."""

    figures: Figures
    series: Mapping[str, Series] = field(default_factory=dict)
    charts: tuple[Lines | Bars, ...] = ()
    notes: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A result, and everything one needs to know to believe it.

    `when` is the moment of the end in UTC, `commit` that of Rota's checkout, if there is one.
    """

    name: str
    question: str
    when: str
    partial: bool
    machine: Mapping[str, Value]
    versions: Mapping[str, str]
    commit: str | None
    settings: Mapping[str, str]
    parameters: Mapping[str, Value]
    figures: Figures
    series: Mapping[str, Series]
    notes: tuple[str, ...]


def report(
    name: str, question: str, url: str, parameters: Mapping[str, Value], result: Result
) -> Report:
    """Add the surroundings to a result; `url` is of a database on the server that was measured."""
    return Report(
        name=name,
        question=question,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        partial=result.partial,
        machine={
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gb": _memory(),
            "system": platform.platform(),
        },
        versions={
            "rota": importlib.metadata.version("rota"),
            "python": platform.python_version(),
            **_driver(url),
        },
        commit=_commit(),
        settings=_settings(url),
        parameters=parameters,
        figures=result.figures,
        series=result.series,
        notes=result.notes,
    )


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
