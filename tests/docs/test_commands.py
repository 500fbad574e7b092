"""The commands that the pages show exist, with the options they show."""

import re
import shlex
from collections.abc import Iterator

import click

from rota.cli.main import cli
from tests.docs.pages import PAGES, ROOT, blocks, everything

SHELLS = {"sh", "console", "ini"}


def every_command(group: click.Group, path: str = "rota") -> Iterator[tuple[str, click.Command]]:
    """All commands below a group, each with the words to type."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{path} {name}")


COMMANDS = {"rota": cli, **dict(every_command(cli))}


def shown() -> Iterator[tuple[str, str]]:
    """Every call of `rota` that a page shows, and where; in blocks and between backticks."""
    for page in PAGES:
        for block in blocks(page):
            if block.language in SHELLS:
                for line in block.text.splitlines():
                    for call in re.findall(r"(?:^|[\s/=])(rota(?: [^#|&;>]*)?)", line):
                        yield f"{page.name}:{block.line}", call.strip()
        for call in re.findall(r"`(rota [^`]+)`", page.read_text(encoding="utf-8")):
            yield page.name, call


def test_commands_exist() -> None:
    """Each call that is shown names a command and options that exist."""
    for where, call in shown():
        words = shlex.split(call.replace("…", "").replace("|", " "))
        name = words.pop(0)
        while words and f"{name} {words[0]}" in COMMANDS:
            name = f"{name} {words.pop(0)}"
        command = COMMANDS[name]
        if isinstance(command, click.Group):
            assert not [word for word in words if not word.startswith("-")], f"{where}: {call}"
        known = {option for parameter in command.params for option in parameter.opts}
        known |= {option for parameter in command.params for option in parameter.secondary_opts}
        for word in words:
            if word.startswith("-"):
                option = word.partition("=")[0]
                assert option in known | {"--help", "--version"}, f"{where}: {call}"


def test_every_command_is_mentioned() -> None:
    """Each command stands in the documentation as it is typed."""
    text = everything()
    assert [name for name in COMMANDS if not re.search(rf"\b{name}\b", text)] == []


def test_make_targets_exist() -> None:
    """Each `make TARGET` that is shown is in the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = "\n".join(
        [
            *(line for page in PAGES for block in blocks(page) for line in block.text.splitlines()
              if block.language in SHELLS and line.startswith("make ")),
            *re.findall(r"`(make [^`]+)`", everything()),
        ]
    )  # fmt: skip
    named = {word for call in re.findall(r"make ([a-z -]+)", text) for word in call.split()}
    assert named <= targets
    assert {"demo", "test"} <= named
