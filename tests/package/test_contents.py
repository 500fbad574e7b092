"""What wheels and sdists hold."""

import ast
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.docs.pages import ROOT
from tests.package.built import Built, build, files, held
from tests.package.environment import metadata


def imported(source: str) -> Iterator[str]:
    """The top-level packages that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_a_wheel_is_its_package(built: Built) -> None:
    """The wheel has each file of its packages, SQL and `py.typed` among them, and no others."""
    with ZipFile(built.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert {f"{package.name}/py.typed" for package in built.packages} <= names
    assert names == set().union(*map(files, built.packages))


def test_imports_are_declared(built: Built) -> None:
    """What a module imports, at its top or in a function, is declared, in an extra at least."""
    names = {name for source in built.modules().values() for name in imported(source)}
    names -= {*sys.stdlib_module_names, *(package.name for package in built.packages)}
    requirements = map(Requirement, metadata(built.wheel).requires or ())
    declared = {canonicalize_name(requirement.name) for requirement in requirements}
    providers = {**packages_distributions(), "rota": ["rota"]}
    # What this Python does not need is not installed, and is known by its own name.
    undeclared = {
        name
        for name in names
        if declared.isdisjoint(map(canonicalize_name, providers.get(name, [name])))
    }
    assert undeclared == set()


def test_the_extra_for_sqlalchemy_is_enough_for_async_code(rota: Built) -> None:
    """`rota[sqlalchemy]` asks SQLAlchemy for greenlet, without which its async sessions fail."""
    requirements = map(Requirement, metadata(rota.wheel).requires or ())
    [wanted] = [
        requirement
        for requirement in requirements
        if requirement.name == "sqlalchemy"
        and (requirement.marker is None or requirement.marker.evaluate({"extra": "sqlalchemy"}))
    ]
    brought = {
        requirement.name
        for requirement in map(Requirement, distribution("sqlalchemy").requires or ())
        for extra in wanted.extras
        if requirement.marker is not None and requirement.marker.evaluate({"extra": extra})
    }
    assert "greenlet" in brought


@pytest.mark.large
def test_an_sdist_builds_the_same_wheel(built: Built, tmp_path: Path) -> None:
    """Whoever packs Rota anew from its sources gets the same bytes."""
    with tarfile.open(built.sdist) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    wheel, _ = build(unpacked, tmp_path / "dist")
    assert wheel.read_bytes() == built.wheel.read_bytes()


def test_the_sdist_has_tests_and_pages(rota: Built) -> None:
    """The sources are enough for working on Rota."""
    names = held(rota.sdist)
    assert {"Makefile", "requirements.lock", "CHANGELOG.md", ".ci/run"} < names
    for folder in ("src", "lab", "tests", "docs", "examples"):
        assert files(ROOT / folder) <= names


def test_no_distribution_has_the_benchmarks_of_others(built: Built) -> None:
    """What runs other job queues is of use in a clone alone."""
    assert [name for name in held(built.sdist) if name.startswith("benchmarks")] == []


@pytest.mark.large
def test_built_again(built: Built, tmp_path: Path) -> None:
    """Whoever builds the same sources gets the same bytes."""
    wheel, sdist = build(built.package.parents[1], tmp_path)
    assert wheel.read_bytes() == built.wheel.read_bytes()
    assert sdist.read_bytes() == built.sdist.read_bytes()
