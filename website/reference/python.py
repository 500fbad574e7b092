"""The reference of Python names: docstrings, read without import, as Sphinx's Python directives."""

import griffe

from website.reference.docstrings import body
from website.reference.package import find, package
from website.reference.public import HIDDEN, PAGES, Name, Page
from website.reference.signatures import fields, signature
from website.staging import Pages

RECORDS = {"Struct", "NamedTuple", "Outcome"}
"""Base classes of values whose fields are all public; those of dataclasses are, too."""


def pages() -> Pages:
    """A page for each of `PAGES`."""
    return {page.name: written(page) for page in PAGES}


def names(page: Page) -> list[Name]:
    """All names of a page: those that it says, then the others of its modules, as written there."""
    listed = list(page.names)
    known = {find(name.path).path for name in listed}
    for module in page.modules:
        found = find(module)
        public = found.exports or [
            name for name, member in found.members.items()
            if isinstance(member, griffe.Class) and not name.startswith("_")
        ]  # fmt: skip
        listed += [
            Name(f"{module}.{name}")
            for name in map(str, public)
            if find(f"{module}.{name}").path not in known
        ]
    return listed


def written(page: Page) -> str:
    """A page's Markdown."""
    parts = [f"# {page.title}\n\n{page.says}\n"]
    for name in names(page):
        found = find(name.path)
        if name.shown or not isinstance(found, griffe.Class) or members(found):
            # What is one line long needs no heading: its own name is in the page's listing.
            parts.append(f"## {name.shown or found.name}\n")
        parts.append(
            shown_class(found, name)
            if isinstance(found, griffe.Class)
            else shown_single(found, name)
        )
    return "\n".join(parts)


def shown_single(found: griffe.Object, name: Name) -> str:
    """A function or a value."""
    module, _, last = name.path.rpartition(".")
    if isinstance(found, griffe.Function):
        return directive("function", f"{last}{signature(found)}", body(found), module)
    return directive("data", last, body(found), module)


def shown_class(found: griffe.Class, name: Name) -> str:
    """A class with its members; or, where users get one from something else, the members of that."""
    if name.shown:
        before = f"{name.shown.partition('(')[0]}."
        return "\n".join([body(found), *(member(one, before) for one in members(found))])
    module = name.path.rpartition(".")[0]
    kind = "exception" if is_error(found) else "class"
    made = ""
    if made_by_users(found):
        made = signature(found.all_members["__init__"], skip=1)
    elif is_record(found):
        made = fields(found)
    inner = "\n".join([body(found), *(member(one) for one in members(found))])
    return directive(kind, f"{found.name}{made}", inner, module, depth=1)


def sections(found: griffe.Object) -> list[griffe.DocstringSectionKind]:
    """Which sections its docstring has."""
    return [section.kind for section in found.docstring.parsed] if found.docstring else []


def made_by_users(found: griffe.Class) -> bool:
    """Whether its docstring says what it is made of, or it is raised by handlers."""
    told = griffe.DocstringSectionKind.parameters in sections(found)
    raised = any(base.name == "Outcome" for base in found.mro())
    return (told or raised) and "__init__" in found.all_members


def is_error(found: griffe.Class) -> bool:
    """Whether it can be raised."""
    return any(str(base) == "Exception" or is_error_name(str(base)) for base in found.bases) or any(
        is_error(base) for base in found.mro()
    )


def is_error_name(name: str) -> bool:
    """Whether a class outside of Rota is an error, by its name."""
    return name.endswith("Error")


def is_record(found: griffe.Class) -> bool:
    """Whether it is a value whose fields are all public."""
    classes = (found, *found.mro())
    bases = {
        str(base).partition("[")[0].rpartition(".")[2] for one in classes for base in one.bases
    }
    return "dataclass" in found.labels or bool(RECORDS & bases)


def members(found: griffe.Class) -> list[griffe.Object]:
    """The public members with words, those of Rota's base classes too, in the code's order."""
    hidden = HIDDEN.get(found.name, set())
    targets = (
        one.final_target if isinstance(one, griffe.Alias) else one
        for one in found.all_members.values()
    )
    return [
        one for one in targets
        if one.docstring and one.name not in hidden
        and (not one.name.startswith("_") or (one.name == "__call__" and found.name == "Crontab"))
    ]  # fmt: skip


def member(one: griffe.Object, before: str = "") -> str:
    """A method, property or value of a class; `before`: its object, where there is only one."""
    if isinstance(one, griffe.Function):
        name = before.removesuffix(".") if one.name == "__call__" else f"{before}{one.name}"
        static = "staticmethod" in one.labels
        options = ":async:\n" if "async" in one.labels else ""
        options += ":staticmethod:\n" if static and not before else ""
        whole = signature(one, skip=0 if static else 1)
        return directive(
            "function" if before else "method", f"{name}{whole}", body(one), options=options
        )
    options = ""
    if isinstance(one, griffe.Attribute) and "property" in one.labels:
        options = f":type: {one.annotation}\n"
    elif isinstance(one, griffe.Attribute) and one.value is not None:
        options = f":value: {one.value}\n"
    return directive(
        "data" if before else "attribute", f"{before}{one.name}", body(one), options=options
    )


def directive(
    kind: str,
    argument: str,
    text: str,
    module: str = "",
    *,
    depth: int = 0,
    options: str = "",
) -> str:
    """One of Sphinx's directives for Python."""
    colons = ":" * (3 + 2 * depth)
    said = (f":module: {module}\n" if module else "") + options
    argument = " ".join(argument.split())
    return f"{colons}{{py:{kind}}} {argument}\n{said}\n{text}\n{colons}\n"


def untold() -> list[str]:
    """Public names, events and methods without docstrings; the package's names that no page has."""
    listed = [name for page in PAGES for name in names(page)]
    shown = {find(name.path).path for name in listed}
    absent = [
        str(name) for name in package().exports or () if find(f"rota.{name}").path not in shown
    ]
    silent = [name.path for name in listed if not find(name.path).docstring]
    for name in listed:
        found = find(name.path)
        if isinstance(found, griffe.Class):
            silent += [
                f"{name.path}.{one}" for one, each in found.all_members.items()
                if not one.startswith("_") and each.is_function and not each.docstring
                and one not in HIDDEN.get(found.name, set())
            ]  # fmt: skip
    return absent + silent
