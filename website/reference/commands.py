"""The reference of the command line, from the parser itself."""

import inspect
from collections.abc import Iterator

import click

from rota.cli.main import cli
from website.staging import Pages

HEAD = """# The command line

For whoever types a command or writes a unit file: every command with all its options. [Commands](../operate/commands.md) has one example of each.

"""


def pages() -> Pages:
    """One page."""
    return {
        "reference/commands": HEAD
        + "\n".join(section(name, command) for name, command in commands())
    }


def commands(group: click.Group = cli, path: str = "rota") -> Iterator[tuple[str, click.Command]]:
    """Every command, each with the words to type, a group before its own."""
    yield path, group
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        elif command is not None:
            yield f"{path} {name}", command


def section(name: str, command: click.Command) -> str:
    """What a command's help says."""
    words = [parameter.make_metavar(click.Context(command)) for parameter in arguments(command)]
    usage = " ".join([name, *words])
    rows = [f"| {spelled(option)} | {explained(option)} |" for option in options(command)]
    table = ["| option | |\n|---|---|", *rows] if rows else []
    return f"## {name}\n\n```sh\n{usage}\n```\n\n{text(command)}\n\n" + "\n".join(table) + "\n"


def arguments(command: click.Command) -> list[click.Argument]:
    """What stands behind the command, in order."""
    return [each for each in command.params if isinstance(each, click.Argument)]


def options(command: click.Command) -> list[click.Option]:
    """Its options, but for those that every command has."""
    return [each for each in command.params if isinstance(each, click.Option) and not each.hidden]


def text(command: click.Command) -> str:
    """The help, with its paragraphs that stay as they are as blocks."""
    parts = []
    for part in inspect.cleandoc(command.help or "").replace("\f", "").split("\n\n"):
        first, _, rest = part.lstrip("\n").partition("\n")
        if first.strip() != "\b":
            parts.append(" ".join(part.split()))
            continue
        title, _, block = dedented(rest).partition("\n")
        language = "sh" if title.startswith("Example") else "text"
        if not title.endswith(":"):
            title, block = "", rest
        parts.append(f"{title}\n\n```{language}\n{dedented(block)}\n```")
    return "\n\n".join(parts)


def dedented(block: str) -> str:
    """A block without what all its lines begin with, and without blank lines around it."""
    lines = block.strip("\n").split("\n")
    least = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[least:] for line in lines)


def spelled(option: click.Option) -> str:
    """How an option is written, with what it takes."""
    ways = ", ".join(f"`{way}`" for way in [*option.opts, *option.secondary_opts])
    if option.is_flag:
        return ways
    if isinstance(option.type, click.Choice):
        return f"{ways} " + " &#124; ".join(f"`{one}`" for one in option.type.choices)
    taken = option.make_metavar(click.Context(click.Command("rota")))
    return f"{ways} `{taken.replace('|', ' ')}`"


def explained(option: click.Option) -> str:
    """What an option does, and what holds without it."""
    extra = option.get_help_extra(click.Context(click.Command("rota")))
    said = (option.help or "").replace("|", "\\|")
    more = [f"{said}"]
    if "default" in extra:
        more.append(f"Default: {str(extra['default']).replace('|', ' ')}.")
    if "range" in extra:
        more.append(f"`{extra['range']}`.")
    return " ".join(more)


def untold() -> list[str]:
    """Commands without help, and options without a word."""
    silent = [name for name, command in commands() if not command.help]
    silent += [
        f"{name} {option.opts[0]}" for name, command in commands() for option in options(command) if not option.help
    ]  # fmt: skip
    return silent
