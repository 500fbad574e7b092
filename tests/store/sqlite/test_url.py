"""From a URL to a file."""

import os
from pathlib import Path

import pytest

from rota.errors import ConfigError
from rota.store.sqlite.store import SqliteStore
from rota.store.sqlite.url import database_path


def test_relative_and_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three slashes are relative, four absolute, and a later change of folder changes nothing."""
    monkeypatch.chdir(tmp_path)
    here = tmp_path.resolve()
    assert database_path("sqlite:///rota.db") == str(here / "rota.db")
    assert database_path("sqlite:///sub/rota.db") == str(here / "sub" / "rota.db")
    assert database_path(f"sqlite:///{here}/rota.db") == str(here / "rota.db")
    assert database_path("rota.db") == str(here / "rota.db")
    assert database_path(Path("rota.db")) == str(here / "rota.db")
    assert database_path("sqlite:///my%20jobs.db") == str(here / "my jobs.db")
    assert os.path.isabs(SqliteStore("sqlite:///rota.db").path)  # noqa: PTH117


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("sqlite:///:memory:", "needs a file"),
        (":memory:", "needs a file"),
        ("sqlite://", "three slashes"),
        ("sqlite:///", "needs a file"),
        ("", "needs a file"),
        ("sqlite://rota.db", "three slashes"),
        ("sqlite:///rota.db?timeout=5", "no options"),
        ("sqlite:////", "needs a file"),
        ("sqlite:////tmp", "names a folder"),
        ("sqlite:///a%00b", "names a folder"),
    ],
)
def test_urls_that_name_no_file(url: str, hint: str) -> None:
    """What cannot be used is refused, and the message says what would be right."""
    with pytest.raises(ConfigError, match=hint):
        SqliteStore(url)
