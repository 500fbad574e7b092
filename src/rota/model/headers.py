"""Headers: names and texts that travel with a job, such as a trace, and moments such as its expiry.

They are stored as a JSON object, or null, beside the args. Names that begin with `rota.` are Rota's
own.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NewType

import msgspec

from rota.errors import ConfigError
from rota.model.durations import moment, seconds

LARGEST = 4096
"""Bytes that a job's headers may have, as JSON."""

OWN = "rota."
"""What the names of Rota's own headers begin with."""

EXPIRES = "rota.expires"
"""Up to when a job may begin, as a moment in UTC."""

ON_SUCCESS = "rota.on_success"
"""The name of the task that follows when the job is completed."""

ON_FAILURE = "rota.on_failure"
"""The name of the task that follows when the job is discarded."""

BAGGAGE = "baggage"
"""The header that traces share: members `name=value`, with commas between them."""

MADE_BY = "rota.cron"
"""The name of the cron entry that has made the job."""

NODE = "rota.node"
"""The id of the node of a flow that the job belongs to."""

NodeId = NewType("NodeId", int)
"""Identifies a node, among those of all flows."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, str]).decode


def check_headers(headers: object) -> dict[str, str]:
    """A copy of what a caller gives.

    Raises:
        ConfigError: It is no mapping from names to texts, has names of Rota's own, or is too large.
    """
    if not isinstance(headers, Mapping):
        message = f"headers: must be a mapping from names to texts, not {type(headers).__name__}"
        raise ConfigError(message)
    for name, text in headers.items():
        if not isinstance(name, str) or not name or name.startswith(OWN):
            message = (
                f"headers: a name must be a text that does not begin with {OWN!r}, not {name!r}; Rota's "
                "own headers have names that do"
            )
            raise ConfigError(message)
        if not isinstance(text, str) or "\0" in name + text:
            message = (
                f"headers: the value of {name!r} must be a text without NUL, not "
                f"{type(text).__name__}; what the task works on belongs in its args"
            )
            raise ConfigError(message)
    copied = dict(headers)
    try:
        size = len(_encode(copied))
    except UnicodeEncodeError as error:
        message = "headers: half of a surrogate pair cannot be stored"
        raise ConfigError(message) from error
    if size > LARGEST:
        message = (
            f"headers: {size} bytes as JSON, the limit is {LARGEST}; they are for marks such as a trace: "
            "what the task works on belongs in its args"
        )
        raise ConfigError(message)
    return copied


def carrying(given: Mapping[str, str] | None, trace: Mapping[str, str]) -> dict[str, str]:
    """Headers with those of a trace beside them; several traces share one `baggage`.

    A trace must not keep a job from being stored: what of it does not fit is left out, baggage
    first.
    """
    own = dict(given or {})
    found = {**own, **trace}
    if BAGGAGE in own and BAGGAGE in trace:
        found[BAGGAGE] = _joined(own[BAGGAGE], trace[BAGGAGE])
    for name in (BAGGAGE, "tracestate", *trace):
        if len(_encode(found)) <= LARGEST:
            break
        found.pop(name, None)
        if name in own:
            found[name] = own[name]
    return found


def _joined(*lists: str) -> str:
    """Lists of `name=value`, as one; of two members with a name, the later."""
    members = [member.strip() for each in lists for member in each.split(",") if member.strip()]
    return ",".join({member.partition("=")[0]: member for member in members}.values())


def check_expires(expires: object) -> float | datetime:
    """When a job expires: seconds from its enqueue on, or a moment in UTC.

    Raises:
        ConfigError: It is neither, or no time is left at all.
    """
    if isinstance(expires, datetime):
        return moment(expires, "expires")
    found = seconds(expires, "expires")  # type: ignore[arg-type]  # which checks it
    if not found:
        message = "expires: must be more than 0 seconds; leave it out for no limit"
        raise ConfigError(message)
    return found


def encoded(headers: Mapping[str, str] | None) -> str | None:
    """Headers as they are stored; nothing where there are none."""
    return _encode(headers).decode() if headers else None


def expiring(stored: str | None, expires: float | datetime) -> str:
    """Headers that say up to when the job may begin; seconds count from now."""
    if not isinstance(expires, datetime):
        expires = datetime.now(UTC) + timedelta(seconds=expires)
    return _encode({**decoded(stored), EXPIRES: expires.astimezone(UTC).isoformat()}).decode()


def decoded(stored: str | None) -> dict[str, str]:
    """Headers as they were stored."""
    return {} if stored is None else _decode(stored)


def of_users(stored: str | None) -> dict[str, str]:
    """Those of the headers that are not Rota's own."""
    return {name: text for name, text in decoded(stored).items() if not name.startswith(OWN)}


def node_of(stored: str | None) -> NodeId | None:
    """The node of a flow that a job with these headers belongs to."""
    if stored is None or NODE not in stored:
        return None
    node = decoded(stored).get(NODE)
    return None if node is None else NodeId(int(node))


def only_node(stored: str) -> NodeId | None:
    """The node, if these headers say nothing else."""
    found = decoded(stored)
    return NodeId(int(found[NODE])) if found.keys() == {NODE} else None


def expired(stored: str, now: float) -> bool:
    """Whether a job with these headers may not begin any more."""
    last = decoded(stored).get(EXPIRES)
    return last is not None and datetime.fromisoformat(last).timestamp() < now
