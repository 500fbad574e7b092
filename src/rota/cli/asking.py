"""Asking the user before something that cannot be taken back."""

import sys

import click

from rota.terminal.exits import FAILED, USAGE, Failure


def ask(question: str, otherwise: str) -> None:
    """Let the user confirm it.

    Raises:
        Failure: There is no user to ask, or the answer is no; then `otherwise` is the message.
    """
    if not can_ask():
        message = f"{question} Standard input is not a terminal; use --yes"
        raise Failure(message, USAGE)
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort as abort:
        click.echo(err=True)  # ends the line of the question
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        agreed = False  # the end of the input
    if not agreed:
        raise Failure(otherwise, FAILED)


def can_ask() -> bool:
    """Whether there is a user to ask."""
    return sys.stdin.isatty()
