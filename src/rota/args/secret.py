"""Args that are shown to nobody: `Secret[str]`.

A mark on an annotation, which type checkers and handlers see as the type itself: a handler gets a
plain `str`. It is stored as any other arg; what is hidden is what people are shown.
"""

import typing
from typing import Annotated, Any, Final, TypeVar

T = TypeVar("T")


class Mark:
    """Says that an annotation is of a secret."""

    def __repr__(self) -> str:
        return "Secret"


MARK: Final = Mark()

Secret = Annotated[T, MARK]
"""Of a parameter: `token: Secret[str]` is a `str` that no view shows."""


def is_secret(annotation: Any) -> bool:
    """Whether a secret is anywhere in an annotation, as in `Secret[str] | None`."""
    if MARK in getattr(annotation, "__metadata__", ()):
        return True
    return any(map(is_secret, typing.get_args(annotation)))
