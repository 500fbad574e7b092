"""Rota's modules, read without importing them."""

import functools
from typing import cast

import griffe

from website.repository import ROOT


@functools.cache
def package() -> griffe.Object:
    """Rota's modules."""
    loaded = griffe.load("rota", search_paths=[ROOT / "src"], docstring_parser="google")
    return cast("griffe.Object", loaded)


def find(path: str) -> griffe.Object:
    """What a dotted path names, where it is defined."""
    found: griffe.Object | griffe.Alias = package()
    for part in path.split(".")[1:]:
        found = found[part]
    return found.final_target if isinstance(found, griffe.Alias) else found
