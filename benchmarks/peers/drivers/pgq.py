"""PgQ, with a loop of our own around it: events without a state of each. An upper bound, not a peer."""

import signal
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import psycopg
from psycopg import sql

from benchmarks.peers.drivers.driver import Handle, Job
from benchmarks.peers.drivers.serve import URL, serve

TICK = 0.01
"""Seconds between two ticks, each of which makes a batch of what is new."""

POLL = 0.005
"""Seconds between two looks for a batch."""

SETUP = """
    CREATE EXTENSION pgq;
    SELECT pgq.create_queue('jobs');
    SELECT pgq.register_consumer('jobs', 'worker');
    SELECT pgq.set_queue_config('jobs', 'ticker_max_lag', '0'),
           pgq.set_queue_config('jobs', 'ticker_idle_period', '1 second'),
           pgq.set_queue_config('jobs', 'ticker_max_count', '500');
    -- A sequence that was never used looks as if it had been used once.
    SELECT nextval(queue_event_seq::regclass) FROM pgq.queue;
    SELECT pgq.ticker('jobs');
    SELECT pgq.next_batch('jobs', 'worker');
    SELECT pgq.finish_batch(sub_batch) FROM pgq.subscription;
"""


class PgQDriver:
    """`insert_event`, COPY into the queue's table, one consumer with a ticker beside it."""

    chunk = 5000

    def setup(self) -> str:
        """Make a queue and its consumer."""
        with psycopg.connect(URL, autocommit=True) as connection:
            connection.execute(SETUP)
            row = connection.execute("SELECT pgq.version()").fetchone()
        assert row is not None  # noqa: S101 - a SELECT of a function has a row
        return str(row[0])

    def one_by_one(self, jobs: Iterable[Job]) -> None:
        """`insert_event`."""
        with psycopg.connect(URL, autocommit=True) as connection, connection.cursor() as cursor:
            for number, moment in jobs:
                event = f"{number} {moment}"
                cursor.execute("SELECT pgq.insert_event('jobs', 'record', %s)", (event,))

    def in_bulk(self, chunks: Iterable[Sequence[Job]]) -> None:
        """COPY, as PgQ's own bulk loading does, and a tick."""
        with psycopg.connect(URL, autocommit=True) as connection, connection.cursor() as cursor:
            row = cursor.execute("SELECT pgq.current_event_table('jobs')").fetchone()
            assert row is not None  # noqa: S101 - a SELECT of a function has a row
            table = sql.Identifier(*row[0].split("."))
            into = sql.SQL("COPY {} (ev_time, ev_type, ev_data) FROM STDIN").format(table)
            now = datetime.now(UTC)
            for chunk in chunks:
                with cursor.copy(into) as copy:
                    for number, moment in chunk:
                        copy.write_row((now, "record", f"{number} {moment}"))
                cursor.execute("SELECT pgq.ticker('jobs')")

    def work(self, handle: Handle) -> None:
        """Take batch after batch."""
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        threading.Thread(target=_tick, args=(stop,), daemon=True).start()
        with psycopg.connect(URL) as connection, connection.cursor() as cursor:
            while not stop.is_set():
                row = cursor.execute("SELECT pgq.next_batch('jobs', 'worker')").fetchone()
                if row is None or row[0] is None:
                    connection.commit()
                    time.sleep(POLL)
                    continue
                cursor.execute("SELECT ev_data FROM pgq.get_batch_events(%s)", row)
                for (event,) in cursor.fetchall():
                    number, _, moment = event.partition(" ")
                    handle(int(number), float(moment))
                cursor.execute("SELECT pgq.finish_batch(%s)", row)
                connection.commit()


def _tick(stop: threading.Event) -> None:
    with psycopg.connect(URL, autocommit=True) as connection:
        while not stop.is_set():
            connection.execute("SELECT pgq.ticker('jobs')")
            time.sleep(TICK)


if __name__ == "__main__":
    serve(PgQDriver())
