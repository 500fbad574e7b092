"""Args that nobody shall see: which ones they are travels with the job, and every view asks here.

A task declares them (`rota.Secret[…]`, `redact=(…)`); each of its jobs has their names in a header of Rota's own, so
that programs that do not know the task hide them as well. The stored args stay as they are.
"""

from collections.abc import Collection

import msgspec

from rota.model.headers import OWN, decoded, encoded
from rota.model.job import JobRecord

REDACTED = f"{OWN}redact"
"""The header with the names of args that are hidden, with commas between them."""

HIDDEN = "***"
"""What is shown instead."""


def redacting(stored: str | None, names: Collection[str]) -> str | None:
    """Headers that say which args are hidden."""
    return encoded({**decoded(stored), REDACTED: ",".join(names)}) if names else stored


def shown_args(job: JobRecord) -> str:
    """A job's args as JSON text, without what is hidden."""
    return redacted_args(job.args, job.headers.get(REDACTED, "").split(","))


def redacted_args(args: str, names: Collection[str]) -> str:
    """Args as JSON text, without the values of these names."""
    if not any(names):
        return args
    try:
        values = msgspec.json.decode(args, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        # SQL can store what cannot be read; then all of it is hidden.
        return msgspec.json.encode(HIDDEN).decode()
    hidden = msgspec.Raw(msgspec.json.encode(HIDDEN))
    shown = {name: hidden if name in names else value for name, value in values.items()}
    return msgspec.json.encode(shown).decode()
