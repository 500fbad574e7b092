"""Every error Rota raises, in one small tree.

```
RotaError
├── ConfigError             a URL, an option or a setting that cannot be used
│   └── DatabaseRefused     the database refuses the user, or a right is missing
│       └── PoolerUnannounced   a pooler in transaction mode, which the URL does not name
├── TaskError               a task that could not do what it says
│   ├── TaskNotFound        no task of that name is registered in this process
│   └── TaskAlreadyRegistered
├── ArgsError               args that cannot be stored, or do not fit the task
├── LifespanFailed          a worker's lifespan could not be entered, or ended by itself
├── CronEntryNotFound       no cron entry of that name is in the database
├── CronEntryExists         there is already a cron entry of that name
├── JobExists               a unique job was enqueued, and its key is taken
├── JobNotFound             no job of that id (or its retention is over)
├── FlowNotFound            no flow of that id (or its retention is over)
├── JobNotFinished          a result was asked for before there is one
├── JobFailed               the job ended without a result: discarded or cancelled
├── LeaseLost               the job was taken over; its outcome was not stored
├── SoftTimeout             raised in a handler: its task's soft timeout has come
├── WorkerDied              in a job's errors: its worker ended in the middle of it
├── ChildDied               in a job's errors, and told to retry policies: its child process did
├── NodeLost                the same: the node of a cluster that ran it was lost
└── StoreError
    ├── StoreUnavailable    the database cannot be reached, or went away
    │   └── ConnectionsInUse    all connections of the app were in use for too long
    ├── TransactionEnded    a handler's block ended the transaction that was to complete its job
    ├── SchemaMissing       run `rota migrate`
    ├── SchemaIncomplete    a dump was restored without Rota's data
    ├── SchemaOutdated      run `rota migrate`
    └── SchemaTooNew        upgrade Rota
```

A message says what to do next. The driver's own error is the `__cause__`, never the surface.
"""


class RotaError(Exception):
    """Any error of Rota's own."""


class ConfigError(RotaError, ValueError):
    """A URL, an option or a setting that cannot be used."""


class DatabaseRefused(ConfigError):
    """The server refuses the user, has no such database, or does not grant a right."""


class PoolerUnannounced(DatabaseRefused):
    """Each transaction goes to another connection of the server: say `pooler=transaction` in the URL."""


class TaskError(RotaError):
    """A task that is not known, is known twice, or could not do its work."""


class TaskNotFound(TaskError, LookupError):
    """No task of that name is registered in this process."""


class SuccessorNotFound(TaskNotFound):
    """A job's handler was not called: its chosen successor is not registered in this worker."""


class TaskAlreadyRegistered(TaskError):
    """Two functions were registered under one task name."""


class ArgsError(RotaError, TypeError):
    """Args that do not fit the task's signature, or that storing would change."""


class LifespanFailed(RotaError):
    """A worker's lifespan could not be entered, or has ended by itself; its own error is the cause."""


class CronEntryNotFound(RotaError, LookupError):
    """No cron entry has that name."""


class CronEntryExists(RotaError):
    """There is already a cron entry of that name."""


class JobExists(RotaError):
    """A unique job was enqueued with `on_conflict="raise"`, and its key is taken.

    `job` is the id of the job that has the key; `None` where two jobs of one `enqueue_many` share
    it.
    """

    def __init__(self, message: str, job: int | None = None) -> None:
        super().__init__(message)
        self.job = job


class JobNotFound(RotaError, LookupError):
    """No job has that id: it never existed, was deleted, or its retention is over."""


class FlowNotFound(RotaError, LookupError):
    """No flow has that id: it never existed, or its retention is over."""


class JobNotFinished(RotaError, TimeoutError):
    """The job has not finished within the time that was allowed."""


class JobEnded(RotaError):
    """The job has ended, and takes no signals any more."""


class SignalTimeout(RotaError, TimeoutError):
    """No signal came in the time that a job waited for it; the wait is over for good."""


class JobFailed(RotaError):
    """The job ended without a result: it was discarded or cancelled."""


class LeaseLost(RotaError):
    """Another worker has taken the job over; what this worker reported was not stored."""


class SoftTimeout(RotaError, TimeoutError):
    """The soft timeout of a handler's task has come, so that it may end in order."""


class WorkerDied(RotaError):
    """A worker ended in the middle of a job, which cost an attempt.

    It is never raised, since no process is left to raise it: a job's errors have its name.
    """


class StoreError(RotaError):
    """The database refused an operation."""


class StoreUnavailable(StoreError, ConnectionError):
    """The database cannot be reached, or went away during the operation."""


class ConnectionsInUse(StoreUnavailable):
    """The app's connection limit was reached and no connection became free in time; nothing was done."""


class TransactionEnded(StoreError):
    """A handler committed or rolled back, in its block, the transaction meant to complete its job.

    What it committed stays; the job is not completed.
    """

    def __init__(self) -> None:
        super().__init__(
            "the transaction of ctx.transaction() was committed or rolled back before its block ended; "
            "the job is not completed, and what was committed stays. Leave commit and rollback to the "
            "block, undo parts of it with savepoints, and write what must stay in any case on another "
            "connection"
        )


class SchemaMissing(StoreError):
    """The database has no Rota tables yet."""


class SchemaIncomplete(StoreError):
    """Rota's tables are there, but their version is missing: a dump was restored without Rota's data."""


class SchemaOutdated(StoreError):
    """The database's Rota tables are older than this version of Rota."""


class SchemaTooNew(StoreError):
    """A newer Rota has removed from the database's tables what this version of Rota uses."""
