"""`rota worker`: run the jobs of an app."""

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from rota.cli.options import ListenOn, Size
from rota.terminal.advice import remember
from rota.terminal.output import json_option, say_json

if TYPE_CHECKING:
    from rota import Rota
    from rota.app.shards import Shards
    from rota.dispatch import Events
    from rota.service.endpoint import Address
    from rota.service.notify import Notifier
    from rota.worker import Worker

STUCK_PATIENCE = 1.0
"""Seconds that left-over threads have to end, once the worker has stopped."""

logger = logging.getLogger("rota")


@click.command()
@click.argument("targets", metavar="MODULE:APP...", nargs=-1)
@click.option(
    "--queue",
    "queues",
    metavar="NAME",
    multiple=True,
    help="Take jobs from this queue, or from queues that match a pattern: 'mail-*', '*'. May be repeated.  "
    "[default: those of the app's tasks]",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="How many jobs run at once.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=0),
    default=0,
    help='How many child processes run tasks with executor="process".  [default: one per core]',
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help='The scheduler of the Dask cluster that runs tasks with executor="dask".  [default: none]',
)
@click.option(
    "--ray",
    metavar="ADDRESS",
    help='The Ray cluster that runs tasks with executor="ray": "auto" for the one on this machine.  [default: none]',
)
@click.option(
    "--max-jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Replace a child process after this many jobs.  [default: never]",
)
@click.option(
    "--max-memory",
    type=Size(),
    metavar="SIZE",
    help="Replace a child process after a job that leaves more memory in use: 500MB, 2GB "
    "(a kB is 1,024 bytes).  [default: never]",
)
@click.option(
    "--grace",
    type=float,
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long running jobs may continue after a request to stop.",
)
@click.option(
    "--session-timeout",
    type=float,
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="After how long without a sign of life other workers take over its jobs.",
)
@click.option(
    "--drain",
    is_flag=True,
    help="Stop when no jobs are left; those in paused queues, and of tasks that no worker knows, are left alone.",
)
@click.option(
    "--url",
    metavar="URL",
    callback=remember,
    help="Work on this database instead of the app's own.",
)
@click.option(
    "--shard",
    metavar="NAME",
    help="Work on only this one of an app's several databases.  [default: on all of them]",
)
@click.option(
    "--health",
    type=ListenOn(),
    metavar="HOST:PORT",
    help="Serve GET /live, GET /ready and, with rota.prometheus, GET /metrics; without a host, only this machine "
    "can connect.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log each job.")
@click.option(
    "--tied",
    is_flag=True,
    hidden=True,
    help="For programs that run workers: say `ready` on standard output when the worker claims, "
    "and stop when standard input ends.",
)
@json_option
def worker(
    *,
    targets: tuple[str, ...],
    queues: tuple[str, ...],
    concurrency: int,
    processes: int,
    dask: str | None,
    ray: str | None,
    max_jobs: int | None,
    max_memory: int | None,
    grace: float,
    session_timeout: float,
    drain: bool,
    url: str | None,
    shard: str | None,
    health: "Address | None",
    verbose: bool,
    tied: bool,
    as_json: bool,
) -> None:
    """Run the jobs of an app's tasks until SIGTERM or Ctrl-C.

    MODULE:APP names the app: for `rota = Rota()` in shop/tasks.py it is shop.tasks:rota; if
    the module has only one app, shop.tasks is enough. Name several apps if they share one
    database, or one app with several databases (Rota.shards). The variable ROTA_APP can hold the names
    instead, separated by spaces.

    The first signal stops the worker gracefully: running jobs may finish, the others are given back.
    The second signal gives back all jobs and ends. With --json the log is JSON lines on stderr,
    and the counts of settled jobs go to stdout at the end.

    \b
    Examples:
      rota worker shop.tasks:rota
      rota worker shop.tasks:rota mail.jobs:rota
      rota worker shop.tasks --queue mail --queue default --concurrency 10
      rota worker shop.tasks --drain        run what there is, then stop
      rota worker shop.tasks --health 8081  tell at http://127.0.0.1:8081/ready whether it claims
    """  # fmt: skip
    from rota import Rota
    from rota.app.running import name_runs
    from rota.app.shards import Shards
    from rota.cli import logs
    from rota.cli.find_app import find_apps
    from rota.config import WorkerConfig
    from rota.events import WorkerStarted
    from rota.service.notify import Notifier
    from rota.store.url import VARIABLE
    from rota.worker import Worker
    from rota.worker.events_of_apps import EventsOfApps

    config = WorkerConfig(
        queues=queues,
        concurrency=concurrency,
        processes=processes,
        dask=dask,
        ray=ray,
        max_jobs=max_jobs,
        max_memory=max_memory,
        grace=grace,
        session_timeout=session_timeout,
        drain=drain,
    )
    logs.set_up(verbose=verbose, as_json=as_json)
    # The first process of a container would not even hear it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # Before the app is imported, which may start programs that must not speak for the worker.
    notifier = Notifier.from_environment()
    if tied:
        threading.Thread(target=_stop_with_owner, name="rota-tied", daemon=True).start()
    if url is not None:
        # For child processes, too: they import the app anew.
        os.environ[VARIABLE] = url
    found = find_apps(targets, click.get_current_context().find_object(Rota))
    work = _work(found, url, shard)
    several = isinstance(work, Shards)
    apps = [*work.values()] if isinstance(work, Shards) else work
    counts: Counter[str] = Counter()
    running = Worker(work, config, begin_child=logs.in_child(verbose=verbose, as_json=as_json))
    for app in dict.fromkeys(apps):
        if as_json:
            name_runs(app)
        _listen(app, counts, verbose=verbose, counting=as_json)
    # What concerns the worker as a whole is told to each app, but to each shard what concerns that.
    every = {app.events: app.tasks for app in apps}
    events = EventsOfApps(every) if several else apps[0].events
    if tied:
        began = threading.Event()
        events.subscribe(WorkerStarted, lambda _: _say_ready(began))
    with _told(running, events, notifier, health):
        for app in () if several else apps:
            app.database.ready()
        running.run()
    if as_json:
        say_json({"settled": dict(counts)})
    _leave_stuck_threads()


def _work(
    found: "list[Rota | Shards]", url: str | None, shard: str | None
) -> "list[Rota] | Shards":
    """What to work on: one or several apps on one database, or an app on all of its databases.

    Raises:
        Failure: The options do not fit the apps.
    """
    from rota import Rota
    from rota.app.shards import Shards
    from rota.terminal.exits import USAGE, Failure

    several = [app for app in found if isinstance(app, Shards)]
    if several and (len(found) > 1 or url is not None):
        message = "an app with several databases (ROTA_SHARDS) runs alone and on all of these: leave out --url and other apps"
        raise Failure(message, USAGE)
    if shard is not None:
        if not several or shard not in several[0]:
            known = (
                f"the shards are {', '.join(several[0])}"
                if several
                else "this app has one database"
            )
            message = f"--shard: there is no shard {shard!r}; {known}"
            raise Failure(message, USAGE)
        return [several[0][shard]]
    if several:
        return several[0]
    apps = [app for app in found if isinstance(app, Rota)]
    for app in apps:
        if url is not None:
            app.use(url)
    return apps


def _say_ready(said: threading.Event) -> None:
    """Say once that the worker claims, on the first of its databases."""
    if not said.is_set():
        said.set()
        click.echo("ready")


@contextlib.contextmanager
def _told(
    worker: "Worker", events: "Events", notifier: "Notifier | None", health: "Address | None"
) -> Iterator[None]:
    """Within the block systemd is told how the worker is, and whoever asks by HTTP."""
    with contextlib.ExitStack() as stack:
        if health is not None:
            from rota.service.endpoint import Endpoint

            # Whoever measures has imported that; nobody else shall pay for it.
            measuring = sys.modules.get("rota.prometheus")
            metrics = None if measuring is None else measuring.exposition
            stack.enter_context(Endpoint(health, worker.health, metrics))
        if notifier is not None:
            from rota.service.systemd import Systemd

            stack.enter_context(Systemd(notifier, worker.health, events))
        yield


def _listen(app: "Rota", counts: Counter[str], *, verbose: bool, counting: bool) -> None:
    from rota.events import JobSettled

    if not verbose and not counting:
        return

    @app.on(JobSettled)
    def _(event: JobSettled) -> None:
        counts[event.settlement.move.value] += 1
        job = event.job
        logger.debug(
            "job %d (%s) attempt %d: %s", job.id, job.task, job.attempt, event.settlement.move.value
        )


def _stop_with_owner() -> None:
    """Wait for the end of the program that started this process, then stop as on a signal."""
    with contextlib.suppress(OSError, ValueError):
        while os.read(0, 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


def _leave_stuck_threads() -> None:
    """End the process, even if handlers in threads did not stop."""
    deadline = time.monotonic() + STUCK_PATIENCE
    stuck = [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("rota-") and not thread.daemon
    ]
    for thread in stuck:
        thread.join(max(0.0, deadline - time.monotonic()))
    left = sum(thread.is_alive() for thread in stuck)
    if not left:
        return
    logger.warning(
        "%d handler(s) did not stop and were abandoned; their jobs were given back", left
    )
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)
