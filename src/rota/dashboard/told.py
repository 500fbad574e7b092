"""What a page says after an action, by its parameters: no text of a link is ever shown."""

from collections.abc import Mapping

from rota.dashboard.pages import acting, many

TOLD = acting.TOLD | many.TOLD
LONGEST = 12
"""Digits of a number of jobs."""


def told(query: Mapping[str, str]) -> str:
    """The sentence for `done`, with the number `changed` in it; empty: nothing was done, or nothing known."""
    text, number = TOLD.get(query.get("done", ""), ""), query.get("changed", "")
    plain = number.isascii() and number.isdigit() and len(number) <= LONGEST
    return text.replace("{changed}", f"{int(number):,}" if plain else "Some")
