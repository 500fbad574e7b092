"""Rota as a stranger has it: installed from its wheel, with what that declares and nothing else."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.package.built import Built
from tests.package.environment import Environment

pytestmark = pytest.mark.large

IMPORT_ALL = """
import importlib, pkgutil, rota
for module in pkgutil.walk_packages(rota.__path__, "rota."):
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        print(error.name)
"""


def test_the_first_job(clean: Environment, tmp_path: Path) -> None:
    """The first example of the README does what the README says."""
    file, commands, output = blocks(ROOT / "README.md")[:3]
    (tmp_path / file.marks["file"]).write_text(file.text, encoding="utf-8")
    done = clean.run("/bin/sh", "-e", "-c", commands.text, cwd=tmp_path)
    expected = ".*?".join(re.escape(part) for part in output.text.strip().split("…"))
    assert re.fullmatch(expected, done.stdout.strip(), re.DOTALL), done.stdout + done.stderr


def test_modules_need_no_more_than_extras(clean: Environment, tmp_path: Path) -> None:
    """Each module can be imported, or says which package of an extra is missing."""
    done = clean.run("python", "-W", "error", "-c", IMPORT_ALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {
        "asgiref", "django", "flask", "jinja2", "litestar", "opentelemetry", "prometheus_client", "psycopg", "ray",
        "sentry_sdk", "starlette", "textual",
    }  # fmt: skip


def test_the_lab_says_where_it_is(clean: Environment, tmp_path: Path) -> None:
    """`rota lab` without the lab names the distribution to install."""
    assert "lab" not in clean.run("rota", "--help", cwd=tmp_path).stdout.split()
    done = clean.run("rota", "lab", "list", cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install rota-lab" in done.stderr


def test_the_lab(rota: Built, lab: Built, tmp_path: Path) -> None:
    """With both wheels `rota lab` is a command like the others."""
    both = Environment(tmp_path / "both", rota.wheel, lab.wheel)
    assert "lab" in both.run("rota", "--help", cwd=tmp_path).stdout.split()
    done = both.run("rota", "lab", "list", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "skip-locked" in done.stdout
