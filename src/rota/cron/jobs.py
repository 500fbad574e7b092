"""The jobs of a cron entry: what they have besides the entry's own fields, and what they get.

The args of an entry are fixed, and so are its keys: they are made once, where the task is at hand.
The templates stay beside the keys, since other args have other keys. Both are stored with the
entry, as JSON.
"""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from rota.cron.entry import CronEntry
from rota.cron.plan import in_zone
from rota.errors import ConfigError
from rota.model.headers import MADE_BY, encoded
from rota.model.job import MAX_ATTEMPTS, JobSpec, Keys
from rota.model.limit import Limit
from rota.model.redaction import redacting
from rota.model.unique import Unique


class CronOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The options of an entry's jobs, with their keys.

    Args:
        attempts_given: Whether the task says how often its jobs are tried.
        timeout_given: Whether the task says how long an attempt may take.
        unique: As in a job.
        unique_key: The key that all its jobs have.
        limit: As in a job.
        limit_key: Likewise.
        fair: The template of the fair key.
        fair_key: Likewise.
        headers: As in a job.
        expires: Seconds from the moment at which a job is made.
        redact: The args that are shown to nobody.
    """

    attempts_given: bool
    timeout_given: bool
    unique: Unique | None = None
    unique_key: str | None = None
    limit: Limit | None = None
    limit_key: str | None = None
    fair: str | None = None
    fair_key: str | None = None
    headers: dict[str, str] | None = None
    expires: float | None = None
    redact: tuple[str, ...] = ()

    def keys(self, count: int) -> Keys | None:
        """The keys of so many jobs, if they have any."""
        each = (self.unique_key, self.limit_key, self.fair_key)
        if each == (None, None, None):
            return None
        return Keys(*(None if key is None else [key] * count for key in each))


def options_of(entry: CronEntry) -> CronOptions:
    """What the jobs of an entry have besides its own fields.

    Raises:
        ConfigError: A newer Rota has written it.
    """
    if entry.options is None:
        # What all jobs get anyway was not given.
        return CronOptions(
            attempts_given=entry.max_attempts != MAX_ATTEMPTS,
            timeout_given=entry.timeout is not None,
        )
    try:
        return msgspec.json.decode(entry.options, type=CronOptions)
    except (msgspec.DecodeError, ConfigError) as error:
        message = f"the options of cron entry {entry.name!r} cannot be read; upgrade Rota ({error})"
        raise ConfigError(message) from error


def with_options(entry: CronEntry, options: CronOptions) -> CronEntry:
    """The same entry with these options; defaults are not written."""
    plain = replace(entry, options=None)
    if options_of(plain) == options:
        return plain
    return replace(entry, options=msgspec.json.encode(options).decode())


def spec_of(entry: CronEntry) -> JobSpec:
    """What all jobs of an entry have.

    Raises:
        ConfigError: A newer Rota has written its options.
    """
    options = options_of(entry)
    return JobSpec(
        task=entry.task,
        queue=entry.queue,
        priority=entry.priority,
        max_attempts=entry.max_attempts if options.attempts_given else None,
        timeout=entry.timeout if options.timeout_given else None,
        unique=options.unique,
        limit=options.limit,
        headers=redacting(
            encoded({**(options.headers or {}), MADE_BY: entry.name}), options.redact
        ),
        expires=options.expires,
        fallback_attempts=entry.max_attempts,
        fallback_timeout=entry.timeout,
    )


def job(entry: CronEntry, due: datetime, now: datetime) -> tuple[JobSpec, str]:
    """The job of a due time, and its args as JSON text; it has the keys of its entry's options.

    Raises:
        ConfigError: A newer Rota has written the options.
    """
    at = due + timedelta(seconds=delay(entry, due))
    spec = spec_of(entry).at_enqueue()
    if at > now:
        spec = replace(spec, at=at)
    if entry.due is None:
        return spec, entry.args
    # The other args stay as they were written.
    args = msgspec.json.decode(entry.args, type=dict[str, msgspec.Raw])
    args[entry.due] = msgspec.Raw(msgspec.json.encode(in_zone(due, entry)))
    return spec, msgspec.json.encode(args).decode()


def without(args: str, name: str) -> str:
    """A JSON object without one of its keys; the rest stays as it was written."""
    fields = msgspec.json.decode(args, type=dict[str, msgspec.Raw])
    fields.pop(name, None)
    return msgspec.json.encode(fields).decode()


def delay(entry: CronEntry, due: datetime) -> float:
    """Seconds of jitter: always the same for an entry and a due time."""
    seed = f"{entry.name}\0{due.timestamp():.0f}".encode()
    drawn = int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest(), "big") / 2**64
    return entry.jitter * drawn
