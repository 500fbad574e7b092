"""The distributions, built once, and environments in which they are installed."""

import pytest

from tests.docs.pages import ROOT
from tests.package.built import Built, build
from tests.package.environment import Environment


@pytest.fixture(scope="session")
def rota(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Rota itself."""
    return Built(
        (ROOT / "src/rota", ROOT / "src/pytest_rota"), *build(ROOT, tmp_path_factory.mktemp("rota"))
    )


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The lab."""
    built = build(ROOT / "lab", tmp_path_factory.mktemp("lab"))
    return Built((ROOT / "lab/src/rota_lab",), *built)


@pytest.fixture(params=["rota", "lab"])
def built(request: pytest.FixtureRequest) -> Built:
    """Each of the two."""
    found: Built = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def clean(rota: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with Rota alone: no extras, no lab."""
    return Environment(tmp_path_factory.mktemp("clean"), rota.wheel)
