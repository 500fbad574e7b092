"""How texts say which jobs to find: fields of a form, and args of a job that acts on them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rota.app.job_filter import Wanted, job_filter
from rota.errors import ConfigError
from rota.model.cause import cause
from rota.model.job import Arg, JobFilter, JobRecord

FIELDS = ("state", "queue", "task", "subject", "arg", "cause")
"""Their names. `arg` is `order_id=42`; `cause` is why jobs were discarded."""

ARG = re.compile(r"(?P<path>[\w-]+(?:\.[\w-]+)*)=(?P<value>[^\0]*)", re.DOTALL)
"""An arg and its value: names inside of it have dots between them."""


@dataclass(frozen=True, slots=True)
class Matching:
    """What jobs are to be: what the database finds them by, and which of these are meant."""

    wanted: JobFilter
    cause: str | None = None

    def has(self, job: JobRecord) -> bool:
        """Whether this one is meant, of those that are found."""
        return self.cause is None or cause(job) == self.cause

    @property
    def counted(self) -> bool:
        """Whether the counters know how many such jobs there are."""
        wanted = self.wanted
        return {wanted.task, wanted.subject, wanted.arg, self.cause} == {None}


def matching(texts: Mapping[str, str]) -> Matching:
    """What these fields mean; an empty one means nothing.

    Raises:
        ConfigError: A field cannot be read.
    """
    said = {name: text for name in FIELDS if (text := texts.get(name, ""))}
    why, arg = said.pop("cause", None), said.pop("arg", None)
    known: Wanted = said  # type: ignore[assignment]  # the names of its fields
    return Matching(replace(job_filter(known), arg=None if arg is None else _arg(arg)), why)


def _arg(text: str) -> Arg:
    found = ARG.fullmatch(text)
    if found is None:
        message = f"arg: must be name=value, such as order_id=42 or user.name=ada, not {text!r}"
        raise ConfigError(message)
    return Arg(tuple(found["path"].split(".")), found["value"].strip())
