"""A job of a relay as a message, with the names that Debezium's outbox has for its parts."""

from typing import Any

import msgspec

from rota.errors import ArgsError, ConfigError
from rota.model.headers import of_users
from rota.model.job import ClaimedJob, JobId


class Message(msgspec.Struct, frozen=True):
    """What is sent.

    Attributes:
        id: The job's, by which a consumer knows a message again.
        aggregatetype: The relay's name.
        aggregateid: The key, whose messages stay in their order.
        type: What has happened.
        payload: JSON, as it was stored.
        headers: Those of the job.
        enqueued_at: When the job was enqueued, in seconds since the epoch.
    """

    id: JobId
    aggregatetype: str
    aggregateid: str
    type: str
    payload: bytes
    headers: dict[str, str]
    enqueued_at: float = 0.0


class MessageRefused(Exception):
    """The target will never take this message, however often it is sent."""


class _Args(msgspec.Struct):
    aggregateid: str
    type: str
    payload: msgspec.Raw


_read = msgspec.json.Decoder(_Args).decode


def message(aggregateid: str, type: str, payload: Any) -> None:  # noqa: A002, ARG001 - Debezium's names
    """Stand for what a worker sends: it is the signature of the jobs.

    Raises:
        ConfigError: Always: a worker that serves the relay's queue sends its jobs, and calls
            nothing.
    """
    text = (
        "a relay sends its jobs in order, from its own queue; this one was called directly, or is in another "
        "queue: enqueue it through the relay, whose queue has its name"
    )
    raise ConfigError(text)


def message_of(job: ClaimedJob) -> Message:
    """The message that a job is.

    Raises:
        ArgsError: Its args are not those of a message: it was enqueued by hand.
    """
    try:
        args = _read(job.args)
    except msgspec.MsgspecError as error:
        text = f"the args are not those of a message (aggregateid, type, payload): {error}"
        raise ArgsError(text) from error
    headers = {} if job.headers is None else of_users(job.headers)
    return Message(
        job.id, job.task, args.aggregateid, args.type, bytes(args.payload), headers, job.enqueued_at
    )


def headers_of(message: Message) -> dict[str, str]:
    """What is no payload, as headers, for targets that have them."""
    return {
        **message.headers,
        "id": str(message.id),
        "aggregatetype": message.aggregatetype,
        "aggregateid": message.aggregateid,
        "type": message.type,
    }
