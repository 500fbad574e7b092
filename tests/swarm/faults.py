"""What each kind of fault does, while its function runs; false: it was not possible just now."""

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psycopg

from tests.fixtures.proxy import Proxy
from tests.swarm.clock import Clock
from tests.swarm.cluster import Cluster, run_program
from tests.swarm.crew import Member
from tests.swarm.ledger import Ledger
from tests.swarm.plan import Fault

POISON = -1_000_000_000_000
"""Numbers of jobs that kill their workers go down from here; those of cron entries lie above."""

SHORT = 0.1
"""Seconds by which a slow network delays each answer."""


@dataclass
class Field:
    """What faults happen to."""

    cluster: Cluster
    workers: Sequence[Member]
    producers: Sequence[Member]
    ledger: Ledger
    clock: Clock | None
    stop: threading.Event

    def worker(self, fault: Fault) -> Member:
        """The worker that it happens to."""
        return self.workers[fault.number % len(self.workers)]

    def producer(self, fault: Fault) -> Member:
        """The producer that it happens to."""
        return self.producers[fault.number % len(self.producers)]

    def proxy(self, fault: Fault) -> Proxy:
        """The way to the database that it happens to, a worker's or a producer's."""
        members = [*self.workers, *self.producers]
        return members[fault.number % len(members)].proxy


def happen(field: Field, fault: Fault) -> bool:
    """Let it happen; whether it did. The ledger has it then, or that it was in vain."""
    began = time.monotonic()
    try:
        if not KINDS[fault.kind](field, fault):
            return False
    except (
        psycopg.Error,
        subprocess.CalledProcessError,
    ):  # the server went away in the midst of it
        field.ledger.say("vain", time.monotonic() - began)
        return False
    field.ledger.say("fault", fault.kind, time.monotonic() - began)
    return True


def _kill(field: Field, fault: Fault) -> bool:
    field.worker(fault).kill()
    return True


def _kill_child(field: Field, fault: Fault) -> bool:
    return field.worker(fault).kill_child()


def _stop(field: Field, fault: Fault) -> bool:
    field.worker(fault).stop()
    return True


def _freeze(field: Field, fault: Fault) -> bool:
    field.worker(fault).freeze(fault.seconds, field.stop)
    return True


def _kill_producer(field: Field, fault: Fault) -> bool:
    field.producer(fault).kill()
    return True


def _freeze_producer(field: Field, fault: Fault) -> bool:
    field.producer(fault).freeze(fault.seconds, field.stop)
    return True


def _poison(field: Field, fault: Fault) -> bool:
    """A job that kills its worker."""
    number = POISON - fault.number
    with field.cluster.admin() as admin:
        field.ledger.say("tried", number, 1, "poison", "sql")
        admin.execute(
            "SELECT rota.enqueue('tests.swarm.tasks.poison', json_build_object('number', %s::int8),"
            " queue => 'plain', max_attempts => 2)",
            [number],
        )
    return True


def _terminate(field: Field, fault: Fault) -> bool:
    """The server ends connections, idle and busy ones."""
    with field.cluster.admin() as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND application_name <> 'swarm'"
            " AND pid %% 100 < 100 * %s",
            [fault.share],
        )
    return True


def _cut(field: Field, fault: Fault) -> bool:
    field.proxy(fault).cut()
    return True


def _silent(field: Field, fault: Fault) -> bool:
    with field.proxy(fault).silent():
        field.stop.wait(fault.seconds)
    return True


def _lost_answers(field: Field, fault: Fault) -> bool:
    """What is asked is done, and the connection ends before the answer."""
    proxy = field.proxy(fault)
    with proxy.silent(asking=False):
        field.stop.wait(fault.seconds / 10)
        proxy.cut()
    return True


def _late_answers(field: Field, fault: Fault) -> bool:
    proxy = field.proxy(fault)
    proxy.delay = SHORT * fault.share
    field.stop.wait(fault.seconds)
    proxy.delay = 0.0
    return True


def _crash(field: Field, _: Fault) -> bool:
    field.cluster.restart(crash=True)
    return True


def _restart(field: Field, _: Fault) -> bool:
    field.cluster.restart(crash=False)
    return True


def _hang(field: Field, fault: Fault) -> bool:
    with field.cluster.hanging():
        field.stop.wait(fault.seconds)
    return True


def _full_disk(field: Field, fault: Fault) -> bool:
    with field.cluster.lock:
        disk = field.cluster.disk
        if disk is None:
            return False
        with disk.full():
            field.stop.wait(fault.seconds / 2)
        # It may have given up.
        field.cluster.restart(crash=True)
    return True


def _clock(field: Field, fault: Fault) -> bool:
    """The server's clock jumps, by up to half a minute, and back."""
    if field.clock is None:
        return False
    with field.clock.jumped((fault.share - 0.5) * 60.0):
        field.stop.wait(2.0 + fault.seconds)
    return True


def _snapshot(field: Field, fault: Fault) -> bool:
    """A transaction keeps an old snapshot."""
    with field.cluster.admin() as admin:
        admin.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        admin.execute("SELECT count(*) FROM rota.job")
        field.stop.wait(2 * fault.seconds)
    return True


def _dump(field: Field, _: Fault) -> bool:
    with suppress(subprocess.CalledProcessError):
        run_program("pg_dump", field.cluster.url)
    return True


def _publication(field: Field, fault: Fault) -> bool:
    name = f"everything_{fault.number}"
    with field.cluster.admin() as admin:
        admin.execute(f"DROP PUBLICATION IF EXISTS {name}")
        admin.execute(f"CREATE PUBLICATION {name} FOR ALL TABLES")
    field.stop.wait(fault.seconds)
    with field.cluster.admin() as admin:
        admin.execute(f"DROP PUBLICATION IF EXISTS {name}")
    return True


KINDS: Mapping[str, Callable[[Field, Fault], bool]] = {
    "kill": _kill,
    "freeze": _freeze,
    "stop": _stop,
    "kill-child": _kill_child,
    "kill-producer": _kill_producer,
    "freeze-producer": _freeze_producer,
    "poison": _poison,
    "terminate": _terminate,
    "cut": _cut,
    "silent": _silent,
    "lost-answers": _lost_answers,
    "late-answers": _late_answers,
    "crash": _crash,
    "restart": _restart,
    "hang": _hang,
    "full-disk": _full_disk,
    "clock": _clock,
    "fail-over": lambda field, _: field.cluster.fail_over(behind=None),
    "fail-over-behind": lambda field, fault: field.cluster.fail_over(behind=fault.seconds / 4),
    "move": lambda field, _: field.cluster.move(quiet=True, clone=False),
    "move-at-work": lambda field, _: field.cluster.move(quiet=False, clone=False),
    "move-to-clone": lambda field, fault: field.cluster.move(quiet=fault.share < 0.5, clone=True),
    "snapshot": _snapshot,
    "dump": _dump,
    "publication": _publication,
}
