"""What comes from elsewhere is what was published."""

import hashlib
import tomllib
from importlib import resources

STATIC = resources.files("rota.dashboard") / "static"
OWN = {
    "rota.css",
    "charts.css",
    "charts.js",
    "keys.js",
    "live.js",
    "select.js",
    "theme.js",
    "icon.svg",
}


def test_sums() -> None:
    """Every file that is not Rota's own is listed with its licence, and has the sum that is listed."""
    listed = tomllib.loads((STATIC / "VENDORED.toml").read_text())
    there = {file.name for file in STATIC.iterdir()} - OWN - {"VENDORED.toml"}
    assert set(listed) == there
    for name, said in listed.items():
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == said["sha256"]
        assert said["licence"]
        assert said["version"]
