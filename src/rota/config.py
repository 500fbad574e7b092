"""The settings of a worker, in one frozen value."""

import os
from dataclasses import dataclass

from rota.errors import ConfigError
from rota.model.durations import seconds
from rota.model.options import check_name

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """How a worker behaves. All durations are in seconds.

    Args:
        queues: The queues to claim from; empty for those of the app's tasks. `mail-*` means all
            whose names match, including later ones, and `*` all queues.
        concurrency: How many jobs run at once.
        processes: How many child processes run the jobs of `executor="process"`.
        prefetch: How many jobs it may hold beyond those that run. It claims fewer where jobs are
            slow: about a tenth of a second's work, and 0.3 seconds' at the most.
        poll: The longest time between two looks at the database while there is nothing to do.
        session_timeout: After how long without a renewal other workers take its jobs over.
        grace: How long running jobs may continue after a request to stop.
        upkeep: Whether it also stages, makes the jobs of cron entries, rescues, tidies and prunes.
        max_jobs: After how many jobs a child process is replaced; `None` for never.
        max_memory: Bytes of memory in use above which a child process is replaced after its job;
            `None` for no limit.
        dask: The address of the scheduler of a Dask cluster, which runs the jobs of
            `executor="dask"`, such as `tcp://10.0.0.5:8786`; without it, they are left to other
            workers.
        ray: The address of a Ray cluster, which runs the jobs of `executor="ray"`: `auto`, or
            `10.0.0.5:6379`.
        drain: Stop once there is nothing left to do; jobs in paused queues are left, and those of
            tasks that no worker knows.

    Raises:
        ConfigError: A value is outside its range.
    """

    queues: tuple[str, ...] = ()
    concurrency: int = 32
    processes: int = 0
    prefetch: int = 5000
    poll: float = 1.0
    session_timeout: float = 15.0
    grace: float = 30.0
    upkeep: bool = True
    drain: bool = False
    max_jobs: int | None = None
    max_memory: int | None = None
    dask: str | None = None
    ray: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.queues, str):
            message = f"queues: must be a tuple of names, such as ({self.queues!r},), not a str"
            raise ConfigError(message)
        for name in self.queues:
            check_name(name, "queue")
        fields = {"concurrency": 1, "processes": 0, "prefetch": 0, "max_jobs": 1, "max_memory": 1}
        for field, least in fields.items():
            value = getattr(self, field)
            if value is None and field.startswith("max_"):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                message = f"{field}: must be a whole number of at least {least}, not {value!r}"
                raise ConfigError(message)
        for field, shortest in (("poll", 0.001), ("session_timeout", 1.0), ("grace", 0.0)):
            if seconds(getattr(self, field), field) < shortest:
                message = f"{field}: must be at least {shortest} seconds"
                raise ConfigError(message)

    @property
    def children(self) -> int:
        """How many child processes there are: as set, else one per core within `concurrency`."""
        return self.processes or max(1, min(self.concurrency, os.cpu_count() or 1))

    @property
    def heartbeat(self) -> float:
        """Seconds between two renewals: five fit into a session's timeout."""
        return self.session_timeout / 5
