"""Args that nobody shall see: which ones they are travels with the job, and every view asks here.

A task declares them (`rota.Secret[…]`, `redact=(…)`); each of its jobs has their names in a header
of Rota's own, so that programs that do not know the task hide them as well. The stored args stay as
they are.
"""

from collections.abc import Collection, Iterable

import msgspec

from rota.model.headers import OWN, decoded, encoded
from rota.model.job import ClaimedJob, JobRecord

REDACTED = f"{OWN}redact"
"""The header with the names of args that are hidden, with commas between them."""

HIDDEN = "***"
"""What is shown instead."""


def redacting(stored: str | None, names: Collection[str]) -> str | None:
    """Headers that say which args are hidden."""
    return encoded({**decoded(stored), REDACTED: ",".join(names)}) if names else stored


def redacted_names(stored: str | None) -> tuple[str, ...]:
    """The names of hidden args that headers (JSON text) say."""
    return tuple(filter(None, decoded(stored).get(REDACTED, "").split(",")))


def shown_args(job: JobRecord | ClaimedJob) -> str:
    """A job's args as JSON text, without what is hidden."""
    if isinstance(job, ClaimedJob):
        return redacted_args(job.args, redacted_names(job.headers))
    return redacted_args(job.args, job.headers.get(REDACTED, "").split(","))


def printed(job: JobRecord | ClaimedJob, names: Iterable[str]) -> str:
    """The `repr` of a job with these attributes: events and errors are printed, and logged."""
    values = {name: getattr(job, name) for name in names} | {"args": shown_args(job)}
    told = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return f"{type(job).__name__}({told})"


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
