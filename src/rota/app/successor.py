"""Successors: jobs that are enqueued in the transaction which writes that another one has ended.

A job has them by the names of tasks: those that its own task declares, or those that its enqueue
chose, which travel in headers of Rota's own. What a successor is given follows from its signature:
its parameter without a default gets the result of the job or, annotated `FinishedJob`, all that is
known of it.

Known weakness: middleware around enqueues does not see successors. It may do anything, and they are
stored in batches, with the ends of other jobs. The headers of users travel on, so a trace is not
broken.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from rota.app.enqueuing import Enqueuing
from rota.app.task import Task
from rota.errors import ArgsError, ConfigError, RotaError, SuccessorNotFound
from rota.model.chosen import never
from rota.model.finished import FinishedJob
from rota.model.headers import ON_FAILURE, ON_SUCCESS, decoded, encoded, of_users
from rota.model.job import AttemptError, ClaimedJob, JobRecord, Order
from rota.model.redaction import redacted_names, redacting
from rota.model.settlement import Settlement, decide
from rota.model.states import Move, State
from rota.model.unique import OnConflict

logger = logging.getLogger("rota")

AnyTask = Task[..., Any, Any]

_error = msgspec.json.Decoder(AttemptError).decode
_plain = msgspec.json.Decoder().decode


# Choosing -----------------------------------------------------------------------------------------


def chosen(option: str, given: object, enqueuing: Enqueuing) -> str:
    """The name of the successor that an option gives, as a task or by its name.

    Raises:
        ConfigError: It is neither, is not of this app, has options of `using()`, or takes what no
            successor is given.
    """
    if isinstance(given, Task):
        if given.enqueuing is not enqueuing:
            message = f"{option}: {given.name!r} is a task of another app; use one of the same app"
            raise ConfigError(message)
        if enqueuing.tasks.get(given.name) is not given:
            message = (
                f"{option}: only the name of {given.name!r} is stored, without the options of using(…); set "
                "these options on the task itself"
            )
            raise ConfigError(message)
        given = given.name
    if not isinstance(given, str) or not given:
        message = f"{option}: must be a task or its name, not {given!r}"
        raise ConfigError(message)
    if given in enqueuing.tasks:
        _check(option, enqueuing.tasks[given])
    return given


def check_declared(task: AnyTask) -> None:
    """Check that the successors which a task declares are there, before a worker begins.

    Raises:
        ConfigError: One is not known here, or takes what no successor is given.
    """
    for option, name in (("on_success", task.on_success), ("on_failure", task.on_failure)):
        if name is None:
            continue
        found = task.enqueuing.tasks.get(name)
        if found is None:
            message = (
                f"task {task.name!r}: its {option} names {name!r}, and no such task is registered here; "
                "correct the name, or import the module that defines it"
            )
            raise ConfigError(message)
        _check(f"task {task.name!r}, {option}", found)


def check_known(job: ClaimedJob, task: AnyTask) -> None:
    """Check, before a job's handler begins, that the successors chosen at its enqueue are there.

    Raises:
        SuccessorNotFound: One is not known here.
    """
    headers = decoded(job.headers)
    for name in (headers.get(ON_SUCCESS), headers.get(ON_FAILURE)):
        if name is not None:
            _found(task, name)


def wants_result(job: ClaimedJob, task: AnyTask) -> bool:
    """Whether the job's successor is given its result."""
    name = _name(Move.COMPLETE, decoded(job.headers), task)
    successor = None if name is None else task.enqueuing.tasks.get(name)
    return successor is not None and _parameter(successor) is not None and not _whole(successor)


# Ending -------------------------------------------------------------------------------------------


def followed(
    settlement: Settlement,
    job: ClaimedJob,
    task: AnyTask,
    value: object = None,
    *,
    encoded: bool = False,
) -> Settlement:
    """A settlement with the job's successor, if it has one.

    `value` is what its handler returned, as JSON text if it is `encoded`. Where the successor
    cannot be given that, the job is discarded instead, as where its result cannot be stored.
    """
    try:
        order = successor(settlement, job, task, value, encoded=encoded)
    except RotaError as error:
        if settlement.move is Move.COMPLETE:
            wrong = ArgsError(f"the handler ran, but its successor cannot be enqueued: {error}")
            keep = task.keeps[job.queue].discarded
            instead = decide(job, wrong, never, keep, now=datetime.now(UTC))
            return followed(instead, job, task)
        logger.exception("job %d (%s): its on_failure cannot be enqueued", job.id, job.task)
        return settlement
    return settlement if order is None else settlement._replace(successor=order)


def successor(
    settlement: Settlement,
    job: ClaimedJob,
    task: AnyTask,
    value: object = None,
    *,
    encoded: bool = False,
) -> Order | None:
    """The order of the successor that a job has if it ends like this.

    Raises:
        RotaError: It cannot be enqueued.
    """
    headers = decoded(job.headers)
    name = _name(settlement.move, headers, task)
    if name is None:
        return None
    found = _found(task, name)
    if not _whole(found):
        if encoded and isinstance(value, str):
            value = task.result_codec.decode(value)
        return _order(found, value, job.headers)
    finished = FinishedJob(
        job.id,
        job.task,
        job.queue,
        _plain(job.args),
        job.attempt,
        State.COMPLETED if settlement.move is Move.COMPLETE else State.DISCARDED,
        None if settlement.result is None else _plain(settlement.result),
        None if settlement.error is None else _error(settlement.error),
    )
    return _order(found, finished, job.headers)


def of_discarded(tasks: Mapping[str, AnyTask], records: Sequence[JobRecord]) -> list[Order]:
    """The orders of the successors of jobs that were discarded where no handler said so: at a rescue.

    A job whose successor is not known here has none.
    """
    orders = []
    for record in records:
        task = tasks.get(record.task)
        name = record.headers.get(ON_FAILURE, None if task is None else task.on_failure)
        if name is None:
            continue
        found = (tasks if task is None else task.enqueuing.tasks).get(name)
        if found is None:
            logger.error(
                "job %d (%s) was discarded, and its on_failure %r is not registered here; enqueue it by hand",
                record.id,
                record.task,
                name,
            )
            continue
        finished = FinishedJob(
            record.id,
            record.task,
            record.queue,
            _plain(record.args),
            record.attempt,
            record.state,
            error=record.errors[-1] if record.errors else None,
        )
        try:
            orders.append(_order(found, finished, encoded(record.headers)))
        except RotaError:
            logger.exception(
                "job %d (%s): its on_failure cannot be enqueued", record.id, record.task
            )
    return orders


def _name(move: Move, headers: Mapping[str, str], task: AnyTask) -> str | None:
    """The name of the task that follows: what the enqueue chose comes before what the task declares."""
    match move:
        case Move.COMPLETE:
            return headers.get(ON_SUCCESS, task.on_success)
        case Move.DISCARD:
            return headers.get(ON_FAILURE, task.on_failure)
        case _:
            return None


def _found(task: AnyTask, name: str) -> AnyTask:
    found = task.enqueuing.tasks.get(name)
    if found is None:
        message = f"its successor {name!r} is not registered in this worker; import the module that defines it"
        raise SuccessorNotFound(message)
    return found


def _order(task: AnyTask, given: object, headers: str | None) -> Order:
    """The order of a successor, which is given this if it takes anything."""
    home, codec, name = task.enqueuing, task.codec, _parameter(task)
    # What is known of a job is not much larger than its args, which were not too large.
    limit = None if isinstance(given, FinishedJob) else home.max_args_bytes
    if name is None:
        args = codec.encode((), {})
    elif name in codec.positional:
        args = codec.encode((given,), {}, limit=limit)
    else:
        args = codec.encode((), {name: given}, limit=limit)
    unique = task.spec.unique
    if unique is not None and unique.on_conflict == OnConflict.RAISE:
        # Nobody could catch the error.
        unique = replace(unique, on_conflict=OnConflict.SKIP)
    spec = replace(task.spec, headers=_headers(task, headers, name, given), unique=unique)
    keys = None if task.keying is None else task.keying.keys([args])
    return Order(home.queues.fill(spec).at_enqueue(), [args], keys)


def _headers(
    task: AnyTask, headers: str | None, parameter: str | None, given: object
) -> str | None:
    """Those of users travel on. What was hidden in the job's args is hidden in its successor's, too."""
    told = encoded({**decoded(task.spec.headers), **of_users(headers)})
    if parameter is None or not isinstance(given, FinishedJob) or not redacted_names(headers):
        return told
    return redacting(told, dict.fromkeys((*redacted_names(told), parameter)))


# Signatures ---------------------------------------------------------------------------------------


def _parameter(task: AnyTask) -> str | None:
    """The parameter that a successor's argument is for; `None`: it takes nothing."""
    return next(iter(task.codec.required), None)


def _whole(task: AnyTask) -> bool:
    """Whether it is given all that is known of the job, and not only its result."""
    name = _parameter(task)
    return name is not None and task.codec.annotation(name) is FinishedJob


def _check(option: str, task: AnyTask) -> None:
    """Check the signature of a successor.

    Raises:
        ConfigError: It takes what it is not given.
    """
    required = task.codec.required
    if len(required) > 1:
        names = ", ".join(f"`{name}`" for name in required)
        message = (
            f"{option}: a successor gets at most one argument, and {task.name!r} needs {names}; "
            "give all but one a default, or accept a FinishedJob, which has the job's args"
        )
        raise ConfigError(message)
    if required and option.endswith("on_failure") and not _whole(task):
        message = (
            f"{option}: a job that failed has no result for `{required[0]}` of {task.name!r}; annotate it with "
            "rota.FinishedJob, or give it a default"
        )
        raise ConfigError(message)
