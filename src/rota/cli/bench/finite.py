"""Numbers as options."""

import math
from typing import Any

import click


class Finite(click.FloatRange):
    """A number in a range: neither `nan`, which is in every range, nor `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read what was written."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"cannot measure with {value}; give a number such as 10.",
                      param, ctx)  # fmt: skip
        return number
