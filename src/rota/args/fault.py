"""What is wrong with a value, and where: what an `ArgsError` will say."""

import re
from dataclasses import dataclass

import msgspec

LONGEST_PATH = 120
"""Characters of a path; one through a hundred lists is no help."""

_WITH_PATH = re.compile(r"^(?P<reason>.*) - at (?:`key` in )?`\$(?P<path>[^`]*)`$", re.DOTALL)
_FIELD = re.compile(r"^Object (?P<fault>missing required|contains unknown) field `(?P<name>.*)`$")
_QUOTES_A_VALUE = re.compile(r"^(Invalid (?:enum )?value) .*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fault:
    """One reason to refuse a value. Neither field ever holds the value or a part of it."""

    reason: str
    """A phrase that follows the name of the value: "is NaN; pass None instead"."""
    path: str = ""
    """Where, below the value: `.items[3].price`."""

    def below(self, step: str) -> "Fault":
        """Return the same fault, seen from the container that holds the value."""
        return Fault(self.reason, step + self.path)

    def told(self, subject: str) -> str:
        """Return the message about a subject such as "args of task 'send'", or about none."""
        path = self.path.removeprefix(".")
        if len(path) > LONGEST_PATH:
            path = path[:LONGEST_PATH] + "…"
        told = f"{f'`{path}`' if path else 'the value'} {self.reason}"
        return f"{subject}: {told}" if subject else told


def of_reading(error: Exception) -> Fault:
    """Translate what a decoder raised, leaving out what might quote the text it read."""
    match error:
        case RecursionError():
            return Fault("is nested too deeply to be read; flatten it")
        case msgspec.ValidationError():
            return _of_validation(error)
        case msgspec.DecodeError():
            return Fault(f"is not valid JSON ({error})")
        case UnicodeError():
            return Fault("is not valid JSON (not UTF-8)")
        case _:
            return _of_own_code(error)


def _of_validation(error: msgspec.ValidationError) -> Fault:
    reason, path = str(error), ""
    if match := _WITH_PATH.match(reason):
        reason, path = match["reason"], match["path"]
    if (cause := error.__cause__) is not None:
        if cause.args and isinstance(fault := cause.args[0], Fault):
            return fault.below(path)
        return _of_own_code(cause).below(path)
    if match := _FIELD.match(reason):
        missing = match["fault"] == "missing required"
        return Fault("is missing" if missing else "is not known", f"{path}.{match['name']}")
    reason = _QUOTES_A_VALUE.sub(r"\1", reason)
    return Fault(f"does not fit its annotation ({reason})", path)


def _of_own_code(error: BaseException) -> Fault:
    # The user's own validator or __post_init__: its message may quote the value.
    return Fault(f"was refused by the code of its own type ({type(error).__name__})")
