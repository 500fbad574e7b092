"""A task's signature, read once: which parameters are args, and how they are compared."""

import inspect
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter as Declared
from typing import Any, Final

import msgspec
from msgspec import inspect as shapes

from rota.args import models, strict
from rota.args.provided import Need, in_pages, is_provided, kinds_of
from rota.args.secret import is_secret
from rota.errors import ArgsError

VAR_POSITIONAL: Final = Declared.VAR_POSITIONAL
VAR_KEYWORD: Final = Declared.VAR_KEYWORD
_UNIONS: Final = (typing.Union, types.UnionType)
_SCALARS: Final[dict[type[shapes.Type], type]] = {
    shapes.IntType: int,
    shapes.FloatType: float,
    shapes.StrType: str,
    shapes.BoolType: bool,
    shapes.NoneType: type(None),
}
_BYTES: Final = (shapes.BytesType, shapes.ByteArrayType, shapes.MemoryViewType)
_KEYS: Final = (shapes.StrType, shapes.AnyType, shapes.EnumType, shapes.LiteralType)


@dataclass(frozen=True, slots=True)
class Shape:
    """What one annotation means.

    Attributes:
        annotation: As msgspec takes it.
        plain: Types whose values, if they are of exactly that type, always come back the same.
        comparison: The rules for every other value.
        binary: Whether it has bytes in it, of which there are several types.
    """

    annotation: object
    plain: frozenset[type]
    comparison: strict.Comparison
    binary: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that is part of the args."""

    name: str
    kind: int
    """One of the kinds of `inspect.Parameter`, as a number."""
    required: bool
    shape: Shape
    secret: bool = False
    declared: object = Any
    """How it is annotated, whatever msgspec makes of that."""

    @property
    def positional(self) -> bool:
        """Whether a positional argument can be for this parameter."""
        return self.kind in (Declared.POSITIONAL_ONLY, Declared.POSITIONAL_OR_KEYWORD)

    @property
    def by_name(self) -> bool:
        """Whether a keyword argument can be for this parameter."""
        return self.kind in (Declared.POSITIONAL_OR_KEYWORD, Declared.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Signature:
    """The args of one task.

    Attributes:
        parameters: In order of declaration, without the context and the resources.
        context: The name of the parameter that receives the context, if there is one.
        needs: The parameters that are given resources.
        lead: How many parameters can be passed by position when the job runs: those before the
            context and the resources, which are passed by name.
    """

    parameters: tuple[Parameter, ...]
    context: str | None
    needs: tuple[Need, ...]
    lead: int


def read(function: Callable[..., object], task: str, context: type | None) -> Signature:
    """Read the signature of a task's function.

    Raises:
        ArgsError: If it cannot be served.
    """
    try:
        declared = inspect.signature(function).parameters.values()
    except (TypeError, ValueError, NameError) as error:
        message = f"the signature of task {task!r} cannot be read: {error}"
        raise ArgsError(message) from error
    parameters: list[Parameter] = []
    needs: list[Need] = []
    found: Declared | None = None
    by_name: Declared | None = None
    lead: int | None = None
    for each in declared:
        subject = f"parameter `{each.name}` of task {task!r}"
        annotation = resolved(function, each, subject)
        if context is not None and _is_context(annotation, context):
            _check_context(each, found, subject)
            found = each
        elif is_provided(each):
            needs.append(needed(each, annotation, subject))
        else:
            if by_name is not None and each.kind is VAR_POSITIONAL:
                what = "context" if by_name is found else "resource"
                raise ArgsError(
                    f"the {what} `{by_name.name}` of task {task!r} stands before `*{each.name}` and "
                    f"cannot be passed by name; declare it after `*{each.name}`"
                )
            parameters.append(_parameter(each, annotation, subject, by_name=bool(needs)))
            continue
        by_name = by_name or each
        lead = len(parameters) if lead is None else lead
    positions = sum(parameter.positional for parameter in parameters)
    return Signature(
        tuple(parameters),
        None if found is None else found.name,
        tuple(needs),
        positions if lead is None else min(lead, positions),
    )


def element(read: Signature, task: str) -> Signature:
    """The signature of one job of a batch handler: one element of the handler's list.

    Raises:
        ArgsError: The handler has another parameter than that list, or none.
    """
    only = read.parameters[0] if len(read.parameters) == 1 else None
    annotation = None if only is None else only.shape.annotation
    if only is None or not only.by_name or list not in (annotation, typing.get_origin(annotation)):
        names = ", ".join(f"`{each.name}`" for each in read.parameters) or "none"
        raise ArgsError(
            f"task {task!r} has batch=, so its handler needs one parameter annotated with a list, "
            "such as `docs: list[Doc]`, and besides that at most a BatchContext and "
            f"resources; its parameters are {names}"
        )
    inner = next(iter(typing.get_args(annotation)), Any)
    shape = shape_of(inner, f"the elements of `{only.name}` of task {task!r}")
    single = replace(only, kind=int(Declared.POSITIONAL_OR_KEYWORD), required=True, shape=shape)
    return Signature((single,), read.context, read.needs, lead=1)


def shape_of(annotation: object, subject: str) -> Shape:
    """Work out what an annotation means, and whether JSON can serve it.

    Raises:
        ArgsError: If it cannot; the message begins with the `subject`.
    """
    if annotation is inspect.Parameter.empty:
        annotation = Any
    try:
        root = shapes.type_info(annotation)
        # Some unions pass the inspection and are only refused here.
        msgspec.json.Decoder(annotation)
    except Exception as error:  # an annotation is the user's code: metaclasses, properties, names
        raise ArgsError(f"{subject} has an annotation that cannot be used: {error}") from error
    exact = False
    names: set[str] = set()
    nodes = list(_nodes(root, set()))
    for node in nodes:
        match node:
            case shapes.AnyType():
                exact = True
            case shapes.CustomType(cls=kind):
                if kind is not object and not models.is_model_class(kind):
                    raise ArgsError(
                        f"{subject} is annotated with {kind.__name__}, which has no form in JSON; "
                        "annotate it with plain types, a dataclass or a model"
                    )
                exact = True
            case shapes.RawType() | shapes.ExtType():
                raise ArgsError(
                    f"{subject} is annotated with a type of msgspec that cannot be checked; "
                    "use plain types or a Struct"
                )
            case shapes.DictType(key_type=key):
                _check_keys(key, subject)
            case shapes.TypedDictType(fields=fields):
                names.update(field.encode_name for field in fields)
            case _:
                pass
    comparison = strict.Comparison(exact, frozenset(names))
    return Shape(annotation, _plain(root), comparison, any(isinstance(n, _BYTES) for n in nodes))


def needed(each: Declared, annotation: object, subject: str) -> Need:
    """What a parameter with the default `PROVIDED` needs.

    Raises:
        ArgsError: It cannot be passed by name.
    """
    if each.kind is Declared.POSITIONAL_ONLY:
        raise ArgsError(
            f"{subject} is a resource, which is passed by name; it cannot be positional-only"
        )
    return Need(each.name, kinds_of(annotation))


def _parameter(each: Declared, annotation: object, subject: str, *, by_name: bool) -> Parameter:
    # Of what comes page by page nothing is stored.
    shape = shape_of(Any if in_pages(annotation) else _element(each, annotation), subject)
    variadic = each.kind in (VAR_POSITIONAL, VAR_KEYWORD)
    required = each.default is Declared.empty and not variadic
    # Behind a resource there are no positions, which type checkers would count otherwise.
    kind = Declared.KEYWORD_ONLY if by_name and not variadic else each.kind
    return Parameter(each.name, kind, required, shape, is_secret(annotation), annotation)


def _element(each: Declared, annotation: object) -> object:
    """Return the annotation of the whole parameter: for `*args: int` a list of int."""
    if each.kind is VAR_POSITIONAL:
        return list[annotation]  # type: ignore[valid-type]
    if each.kind is VAR_KEYWORD:
        if typing.get_origin(annotation) is typing.Unpack:
            return typing.get_args(annotation)[0]
        return dict[str, annotation]  # type: ignore[valid-type]
    return annotation


def resolved(function: Callable[..., object], each: Declared, subject: str) -> object:
    """The annotation of a parameter, which may be written as text.

    Raises:
        ArgsError: It cannot be resolved.
    """
    if each.annotation is Declared.empty:
        return Any
    # Parameter by parameter, so that an error names its own, without the return annotation.
    stub = types.SimpleNamespace(__annotations__={each.name: each.annotation})
    try:
        hints = typing.get_type_hints(stub, _globals(function), include_extras=True)
    except Exception as error:  # a string annotation is code, and may raise anything
        raise ArgsError(
            f"{subject} has an annotation that cannot be resolved: {error}; import its names at "
            "run time (not under TYPE_CHECKING) and define them at module level"
        ) from error
    found: object = hints[each.name]
    return found


def _globals(function: Callable[..., object]) -> dict[str, Any]:
    inner: object = inspect.unwrap(function)
    while isinstance(inner, partial):
        inner = inspect.unwrap(inner.func)
    if not hasattr(inner, "__globals__"):
        inner = inspect.unwrap(type(inner).__call__) if callable(inner) else inner
    names: dict[str, Any] = getattr(inner, "__globals__", {})
    return names


def _is_context(annotation: object, context: type) -> bool:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _is_context(typing.get_args(annotation)[0], context)
    if origin in _UNIONS:
        return set(typing.get_args(annotation)) == {context, type(None)}
    return annotation is context


def _check_context(each: Declared, found: Declared | None, subject: str) -> None:
    if found is not None:
        raise ArgsError(f"{subject} is a second context beside `{found.name}`; keep one")
    if each.kind not in (Declared.POSITIONAL_OR_KEYWORD, Declared.KEYWORD_ONLY):
        raise ArgsError(
            f"{subject} is a context, which is passed by name; declare it as an ordinary or keyword-only parameter"
        )


def _check_keys(key: shapes.Type, subject: str) -> None:
    options = key.types if isinstance(key, shapes.UnionType) else (key,)
    if not any(isinstance(option, _KEYS) for option in options):
        raise ArgsError(
            f"{subject} is annotated with a dict whose keys are not str; keys of JSON are: "
            "use str keys, or a list of pairs"
        )


def _plain(root: shapes.Type) -> frozenset[type]:
    if isinstance(root, shapes.AnyType):
        return frozenset(_SCALARS.values())
    options = root.types if isinstance(root, shapes.UnionType) else (root,)
    # Equal to a bare node: without bounds, a length or a pattern, which only decoding checks.
    bare = (option for option in options if type(option) in _SCALARS and option == type(option)())
    return frozenset(_SCALARS[type(option)] for option in bare)


def _nodes(node: object, seen: set[int]) -> Iterator[shapes.Type]:
    """Walk the description of a type; classes that contain themselves are cycles in it."""
    if isinstance(node, tuple):
        for item in node:
            yield from _nodes(item, seen)
    elif isinstance(node, shapes.Field):
        yield from _nodes(node.type, seen)
    elif isinstance(node, shapes.Type) and id(node) not in seen:
        seen.add(id(node))
        yield node
        for name in node.__struct_fields__:
            yield from _nodes(getattr(node, name), seen)
