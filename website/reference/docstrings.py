"""A docstring in Google's style as MyST: its text, and lists of parameters, errors and attributes."""

import griffe

Kind = griffe.DocstringSectionKind

FIELDS = {Kind.parameters: "param", Kind.other_parameters: "param", Kind.attributes: "ivar"}


def body(found: griffe.Object) -> str:
    """What an object's docstring says."""
    if found.docstring is None:
        return ""
    return "\n\n".join(filter(None, map(section, found.docstring.parsed))) + "\n"


def section(part: griffe.DocstringSection) -> str:
    """One section; its lists are fields, which Sphinx lays out."""
    if part.kind is Kind.text:
        return str(part.value)
    if part.kind in FIELDS:
        return "\n".join(
            field(f"{FIELDS[part.kind]} {starred(one.name)}", one.description) for one in part.value
        )
    if part.kind is Kind.raises:
        # By their whole names: an event may have the name of an error.
        return "\n".join(
            field(f"raises ~{one.annotation.canonical_path}", one.description) for one in part.value
        )
    if part.kind in {Kind.returns, Kind.yields}:
        said = " ".join(
            f"{one.name or one.annotation or ''}: {one.description}".removeprefix(": ")
            for one in part.value
        )
        return field("returns" if part.kind is Kind.returns else "yields", said)
    if part.kind is Kind.admonition:
        return f"**{part.title}** {part.value.description}"
    if part.kind is Kind.examples:
        return "\n\n".join(text for _, text in part.value)
    message = f"a docstring has a section that the reference does not know: {part.kind}"
    raise ValueError(message)


def field(name: str, text: str) -> str:
    """A field with its text, whose further lines belong to it."""
    return f":{name}: " + " ".join(text.split())


def starred(name: str) -> str:
    """A name that Markdown leaves alone."""
    return name.replace("*", "\\*")


def parameters(found: griffe.Object) -> dict[str, str]:
    """What a docstring says of each parameter, as one line for a table."""
    parts = found.docstring.parsed if found.docstring else []
    return {
        one.name: " ".join(one.description.split()).replace("|", "\\|")
        for part in parts
        if part.kind is Kind.parameters
        for one in part.value
    }
