"""How a function is called and what a record is made of, as one line of Python."""

from typing import cast

import griffe

from website.reference.package import find

LONGEST = 40
"""Letters of a constant that is shown instead of its name."""


def signature(found: griffe.Object | griffe.Alias, skip: int = 0) -> str:
    """The parameters of a function and what it returns, without the first `skip` ones."""
    function = cast(
        "griffe.Function", found.final_target if isinstance(found, griffe.Alias) else found
    )
    parts: list[str] = []
    star = slash = False
    given = list(function.parameters)[skip:]
    for parameter in given:
        kind = parameter.kind
        if slash and kind is not griffe.ParameterKind.positional_only:
            parts.append("/")
            slash = False
        slash = slash or kind is griffe.ParameterKind.positional_only
        if kind is griffe.ParameterKind.keyword_only and not star:
            parts.append("*")
            star = True
        star = star or kind is griffe.ParameterKind.var_positional
        stars = {
            griffe.ParameterKind.var_positional: "*",
            griffe.ParameterKind.var_keyword: "**",
        }.get(kind, "")
        typed = f": {parameter.annotation}" if parameter.annotation is not None else ""
        value = "" if parameter.default is None or stars else f" = {constant(parameter.default)}"
        parts.append(f"{stars}{parameter.name}{typed}{value}")
    if slash:
        parts.append("/")
    returns = (
        f" -> {function.returns}"
        if function.returns is not None and function.name != "__init__"
        else ""
    )
    return f"({', '.join(parts)}){returns}"


def fields(found: griffe.Class) -> str:
    """The fields of a record, with their types and defaults; those of its base classes come first."""
    shown: dict[str, str] = {}
    for one in (*reversed(found.mro()), found):
        for each in one.members.values():
            if (
                isinstance(each, griffe.Attribute)
                and "instance-attribute" in each.labels
                and each.annotation
            ):
                value = "" if each.value is None else f" = {constant(each.value)}"
                shown[each.name] = f"{each.name}: {each.annotation}{value}"
    return f"({', '.join(shown.values())})" if shown else ""


def constant(value: str | griffe.Expr) -> str:
    """A default as a reader wants it: the number behind a name of Rota's own."""
    if isinstance(value, griffe.ExprName):
        try:
            target = find(value.canonical_path)
        except KeyError:
            return str(value)
        if (
            isinstance(target, griffe.Attribute)
            and target.value is not None
            and len(str(target.value)) < LONGEST
        ):
            return str(target.value)
    return str(value)
