"""Which resource a parameter means: by its type, a subclass, or its name."""

import collections.abc
from typing import Annotated, Any, Optional, Protocol, TypedDict, runtime_checkable

import pytest

from rota.app.resources import Resources
from rota.args.provided import Need, kinds_of
from rota.errors import ConfigError


class Engine:
    """A type."""


class FastEngine(Engine):
    """A finer one."""


class Row(TypedDict):
    """No type that a value can be asked for."""

    number: int


class Closing(Protocol):
    """A protocol that only type checkers know."""

    def close(self) -> None:
        """Close."""


@runtime_checkable
class Sized(Protocol):
    """One of which a value can be asked whether it has it."""

    def __len__(self) -> int:
        """How many."""


def given(kind: object, name: str = "it", /, **values: object) -> object:
    """The resource that a parameter of that name and annotation gets."""
    resources = Resources()
    for key, value in values.items():
        resources.add(key, value)
    return resources.given([Need(name, kinds_of(kind))], "task 'job'")[name]


@pytest.mark.parametrize(
    ("annotation", "kinds"),
    [
        (Engine, (Engine,)),
        (Engine | None, (Engine,)),
        (Optional[Engine], (Engine,)),  # noqa: UP045 - people write it
        (Engine | FastEngine, (Engine, FastEngine)),
        (Annotated[Engine, "the primary one"], (Engine,)),
        (list[Engine], (list,)),
        (collections.abc.Callable[[], None], (collections.abc.Callable,)),
        (Sized, (Sized,)),
        (Closing, ()),
        (Engine | Closing, ()),
        (Row, ()),
        (Any, ()),
        (object, ()),
    ],
    ids=str,
)
def test_types(annotation: object, kinds: tuple[type, ...]) -> None:
    """What an annotation says of a value; nothing, where no value can be asked for it."""
    assert kinds_of(annotation) == kinds


def test_the_exact_type_comes_first() -> None:
    """A value of exactly that type is meant, whatever the names and subclasses are."""
    engine, fast = Engine(), FastEngine()
    assert given(Engine, "fast", engine=engine, fast=fast) is engine
    assert given(FastEngine, "engine", engine=engine, fast=fast) is fast
    assert given(Engine | None, engine=engine, other=1) is engine


def test_a_subclass() -> None:
    """Without one of exactly that type, a value of a subclass is meant, or one that has the protocol."""
    fast = FastEngine()
    assert given(Engine, fast=fast, other=1) is fast
    assert given(Sized, fast=fast, text="abc") == "abc"


def test_by_name() -> None:
    """Of several that fit, the parameter's name decides; it alone counts where no type can tell."""
    one, two, fast = Engine(), Engine(), FastEngine()
    assert given(Engine, "two", one=one, two=two) is two
    assert given(Engine, "fast", fast=fast, faster=FastEngine()) is fast
    assert given(Any, "two", one=one, two=two) is two
    assert given(Closing, "two", one=one, two=two) is two


@pytest.mark.parametrize(
    ("kind", "values", "why"),
    [
        (Engine, {"a": Engine(), "b": Engine()},
         "several resources are of that type; name the parameter: a or b"),
        (Engine, {"a": FastEngine(), "b": FastEngine(), "it": 1},
         "several resources are of that type; name the parameter: a or b"),
        (Engine, {"it": 1, "a": "b"},
         r"no lifespan of the worker yields it; there are: it \(int\), a \(str\); add one with @rota"),
        (FastEngine, {"a": Engine()}, "no lifespan of the worker yields it"),
        (Any, {"a": Engine()}, r"parameter `it`: no lifespan .* there are: a \(Engine\)"),
        (Engine, {}, "parameter `it: Engine`: .* there are none"),
        (Engine, {"it": None}, "there are none"),
    ],
)  # fmt: skip
def test_none_is_meant(kind: object, values: dict[str, object], why: str) -> None:
    """The error names the task, the parameter and what there is."""
    with pytest.raises(ConfigError, match=f"^task 'job': .*{why}"):
        given(kind, **values)
