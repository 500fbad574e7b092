"""What travels between Rota's rooms: a job as it is asked for, claimed, and looked at.

All are frozen values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from operator import index
from typing import NamedTuple, NewType, Self, SupportsIndex

import msgspec

from rota.model.headers import expiring
from rota.model.limit import Limit
from rota.model.queue_settings import QueueSettings
from rota.model.states import State
from rota.model.unique import Unique

JobId = NewType("JobId", int)
"""Identifies a job for ever, through all its attempts."""

LARGEST_ID = 2**63 - 1
"""What a database can hold."""

SessionId = NewType("SessionId", int)
"""Identifies one run of one worker process."""

LeaseId = NewType("LeaseId", int)
"""Identifies what one claim handed out. New at every claim, hence the fencing token."""


MAX_ATTEMPTS = 5
"""Attempts of a job, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Everything about a job but its args; one spec serves a whole `enqueue_many`.

    `delay` is in seconds from the moment the database stores the job, `at` an aware time; at most
    one of them is set. `timeout` is in seconds, `None` for no limit. `wake` says whether a sleeping
    worker is told of the job at once; otherwise it finds it by polling. `unique` and `limit` are
    the rules for keys; the keys themselves are in `Keys`. `headers` are JSON text; `expires`,
    seconds or a moment, becomes one of them at the enqueue.

    `max_attempts` and `timeout` are `None` where neither the caller nor the task says them. Then
    what is set for the queue in the database holds, and without that the two fallbacks: what the
    code declares for the queue, or Rota's own.
    """

    task: str
    queue: str = "default"
    priority: int = 0
    max_attempts: int | None = None
    timeout: float | None = None
    delay: float | None = None
    at: datetime | None = None
    wake: bool = True
    unique: Unique | None = None
    limit: Limit | None = None
    headers: str | None = None
    expires: float | datetime | None = None
    fallback_attempts: int = MAX_ATTEMPTS
    fallback_timeout: float | None = None

    def at_enqueue(self) -> Self:
        """The spec of jobs that are enqueued now."""
        if self.expires is None:
            return self
        return replace(self, headers=expiring(self.headers, self.expires))

    def attempts(self, preset: int | None) -> int:
        """How often its jobs are tried, where `preset` is set for the queue in the database."""
        if self.max_attempts is not None:
            return self.max_attempts
        return self.fallback_attempts if preset is None else preset

    def time_limit(self, preset: float | None) -> float | None:
        """Seconds that an attempt may take, where `preset` is set for the queue in the database."""
        if self.timeout is not None:
            return self.timeout
        return self.fallback_timeout if preset is None else preset

    @property
    def later(self) -> bool:
        """Whether the job waits for its time before it becomes available."""
        return self.delay is not None or self.at is not None


class Keys(NamedTuple):
    """The keys of jobs that are enqueued together, each as many as there are args, or none."""

    unique: Sequence[str] | None = None
    limit: Sequence[str] | None = None
    fair: Sequence[str] | None = None


class Order(NamedTuple):
    """What one enqueue asks for: jobs of one spec, with their args as JSON texts.

    `keys` are those of the jobs, where they have any.
    """

    spec: JobSpec
    args: Sequence[str]
    keys: Keys | None = None

    @property
    def unique(self) -> tuple[Unique, Sequence[str]] | None:
        """The rule for unique keys and the key of each job, if there are such."""
        if self.keys is None or self.keys.unique is None or self.spec.unique is None:
            return None
        return self.spec.unique, self.keys.unique


class Following(NamedTuple):
    """Successors enqueued together: their task, their queue, and the ids of those that are new."""

    task: str
    queue: str
    jobs: tuple[JobId, ...]


class ClaimedJob(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One job in the hands of a worker. `attempt` counts from 1 and includes this run.

    `enqueued_at` is in seconds since the epoch: making a datetime of it would cost more than the
    rest of the row, and few handlers look. `limited` says whether others may wait until it has
    ended; `filled` is its limit's key, if this job took the limit's last place. `suspects` is set
    for a job that was in the hands of a worker that died, with how many it was: it runs apart from
    others. `headers` are JSON text.

    A worker holds thousands of these, and each field is a plain value. So the garbage collector
    need not follow them (`gc=False`): else it would look through all of them again and again.
    """

    id: JobId
    lease: LeaseId
    task: str
    args: str
    queue: str
    priority: int
    attempt: int
    max_attempts: int
    timeout: float | None
    enqueued_at: float
    suspects: int | None = None
    headers: str | None = None
    unique_key: str | None = None
    limited: bool = False
    filled: str | None = None

    def __repr__(self) -> str:
        from rota.model.redaction import printed  # which needs jobs

        return printed(self, self.__struct_fields__)


@dataclass(frozen=True, slots=True)
class AttemptError:
    """Why one attempt failed. `exception` is the dotted name of its class."""

    attempt: int
    at: datetime
    exception: str
    message: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come: the `fraction` that is done, from 0 to 1, and its message."""

    fraction: float
    message: str
    attempt: int
    at: datetime


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a handler has written with `Context.log`.

    `level` is debug, info, warning or error, or `dropped` where Rota says how many lines are not
    kept. `number` counts the lines of a run, from 1; `lease` tells runs apart.
    """

    at: datetime
    level: str
    message: str
    attempt: int
    lease: LeaseId
    number: int


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as the database knows it. `args` and `result` are JSON text.

    `attempt` is the number of attempts begun so far. `scheduled_at` is set while the job waits for
    its time, `finished_at` once it has finished; `worker` names its worker while it is running.
    `progress` and `log` are what its handler reported; lists of jobs leave them out. `iteration`
    counts the rounds that ended with `Again`, the last of them at `last_run`. `headers` are the
    names and texts that travel with it.
    """

    id: JobId
    task: str
    args: str
    queue: str
    priority: int
    state: State
    attempt: int
    max_attempts: int
    timeout: float | None
    enqueued_at: datetime
    scheduled_at: datetime | None = None
    finished_at: datetime | None = None
    result: str | None = None
    errors: tuple[AttemptError, ...] = ()
    worker: str | None = None
    cancel_requested: bool = False
    progress: Progress | None = None
    log: tuple[LogLine, ...] = ()
    unique_key: str | None = None
    iteration: int = 0
    last_run: datetime | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        from rota.model.redaction import printed  # which needs jobs

        return printed(self, [each.name for each in fields(self)])


class Arg(NamedTuple):
    """A path in args, of names and list numbers, and its value: text as it is, others as JSON."""

    path: tuple[str, ...]
    value: str


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a listing shows; `None` means any. `limit` bounds the answer.

    A listing begins with the newest job, or with the one that follows `after`: the last one of the
    page before. It ends with the job `since`, or with the oldest. `arg` is a path in the args and
    the value at its end; args that are hidden are found by nothing. `subject` is a unique key, or
    the beginning of some, with a `*` behind it. `brief` leaves out what may be large: args are
    empty then, there are no results and headers, and of the errors the end of the last one alone.
    """

    state: State | None = None
    queue: str | None = None
    task: str | None = None
    limit: int = 50
    subject: str | None = None
    after: JobId | None = None
    since: JobId | None = None
    arg: Arg | None = None
    brief: bool = False

    @property
    def lowest(self) -> int:
        """The lowest id that is listed."""
        return 1 if self.since is None else self.since

    @property
    def until(self) -> int:
        """The highest id that is listed."""
        return LARGEST_ID if self.after is None else self.after - 1

    @property
    def subjects(self) -> tuple[str, str] | None:
        """The first and the last key that `subject` means, in the order of code points."""
        if self.subject is None:
            return None
        if self.subject.endswith("*"):
            start = self.subject[:-1]
            return start, start + "\U0010ffff"
        return self.subject, self.subject


MANY_KEYS = 1_000
"""Unique keys with the wanted beginning, from which on a bounded listing looks at jobs by id."""


class Reach(NamedTuple):
    """Between which ids a listing has to look: from `until` down to `since`; `None` is the oldest job.

    `beyond` is the id below which there are more, where the next ones are known to be much older.
    """

    until: JobId
    since: JobId | None
    beyond: JobId | None = None


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """A queue, whether it is paused, and how many of its jobs are in each state.

    `appended` is how many times jobs of the queue became available, `claimed` how many times they
    were claimed. Both only grow, so the difference between two looks is a rate; with thousands of
    queues, those of an idle queue begin again at 0.
    """

    name: str
    paused: bool
    counts: Mapping[State, int] = field(default_factory=dict)
    appended: int = 0
    claimed: int = 0


class Cleared(NamedTuple):
    """How many jobs one step of clearing has deleted, and up to which id it has looked.

    `last` is `None` where nothing is left to look at.
    """

    deleted: int
    last: JobId | None


class SessionInfo(msgspec.Struct, frozen=True):
    """A worker's host, process, queues and tasks; `None`: it does not say which tasks it knows.

    Without a renewal its session lives `timeout` seconds.
    """

    host: str
    pid: int
    queues: tuple[str, ...]
    timeout: float
    tasks: tuple[str, ...] | None = None


class Renewal(msgspec.Struct, frozen=True):
    """What a worker learns when it renews its session.

    `alive` is false when the session was rescued; `cancel` names the running jobs of the session
    that are to be cancelled. `serving` says which sessions with the same tasks serve each of its
    queues, in the same order for all of them and without those long silent; empty where that does
    not matter. `queues` is what is set for single queues in the database. `clock` is the
    database's, in seconds; `None` where that does not matter.
    """

    alive: bool
    cancel: frozenset[JobId] = frozenset()
    serving: Mapping[str, Sequence[SessionId]] = msgspec.field(default_factory=dict)
    queues: Mapping[str, QueueSettings] = msgspec.field(default_factory=dict)
    clock: float | None = None


class Rescue(msgspec.Struct, frozen=True):
    """What a rescue took back from one dead session.

    `blamed` is the job that ran alone when its worker died: its attempt is spent, and no other.
    `following` are the successors of those that were discarded.
    """

    session: SessionId
    worker: str
    available: tuple[JobId, ...]
    discarded: tuple[JobId, ...]
    blamed: JobId | None = None
    following: tuple[Following, ...] = ()


def possible(job: object) -> bool:
    """Whether this can be the id of a job."""
    if isinstance(job, bool) or not isinstance(job, SupportsIndex):
        return False
    return 1 <= index(job) <= LARGEST_ID
