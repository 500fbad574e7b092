"""What a page says after an action, by its parameters: no text of a link is ever shown."""

from collections.abc import Mapping

from rota.dashboard.pages import acting, many

TOLD = acting.TOLD | many.TOLD
NUMBERS = ("changed", "left")
"""Parameters that are numbers of jobs."""

LONGEST = 12
"""Digits of a number of jobs."""


def told(query: Mapping[str, str]) -> str:
    """The sentence for `done`, with its numbers; empty: nothing was done, or nothing known."""
    text = TOLD.get(query.get("done", ""), "")
    for name in NUMBERS:
        number = query.get(name, "")
        plain = number.isascii() and number.isdigit() and len(number) <= LONGEST
        text = text.replace(f"{{{name}}}", f"{int(number):,}" if plain else "Some")
    return text
