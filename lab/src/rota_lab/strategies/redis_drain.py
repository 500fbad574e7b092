"""Jobs are saved in the database, drained in bulk to Redis, and worked from there: article 1.

Reproduced: a `pending_jobs` table, to which jobs are added in the caller's transaction; "a
background process could then loop through and select jobs from this table en masse and feed them
out to a Redis-backed job queue like Sidekiq".

Filled in, as the article prints nothing of it: the drainer pushes a batch, then deletes it, then
commits, so that a crash between them pushes jobs twice and loses none; it deletes what it has
pushed by its ids, and not up to the largest one, below which a transaction may commit later; a
session's advisory lock keeps a second drainer waiting. The queue is Sidekiq's list: pushed on the
left, popped on the right. Workers poll it as the other designs poll theirs; Sidekiq's block.

What it loses: a job leaves the list when a worker pops it, as with Sidekiq's own fetch, so it is
gone when the worker dies at work, or when its work fails (Sidekiq's retries are left out); all
that is in Redis is gone when a Redis without persistence dies. `left` cannot see which workers are
at work: Redis does not tell.
"""

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from rota.errors import StoreUnavailable
from rota_lab.databases import Database
from rota_lab.shift import Shift
from rota_lab.strategy import Job, Strategy


class RedisDrain(Strategy):
    """Workers never see the table."""

    name = "redis-drain"
    summary = (
        "Drains a table of pending jobs to a list in Redis, in bulk, and has workers pop from that."
        " A slow select is one for many jobs, but a job is lost when its worker dies."
    )
    articles = (1,)
    databases = (Database.POSTGRES,)
    redis = True
    attended = True
    patient = True
    defaults = {"batch": 1000}

    @cached_property
    def client(self) -> Any:
        """The connection to Redis."""
        redis = importlib.import_module("redis")
        # No limit: what is pushed late is in the list all the same.
        return redis.Redis.from_url(self.location.redis, decode_responses=True, socket_timeout=None)

    @property
    def key(self) -> str:
        """The list's."""
        return f"{self.location.prefix}queue:default"

    def open(self) -> None:
        super().open()
        with _translated():
            self.client.ping()

    def close(self) -> None:
        if "client" in vars(self):
            self.client.close()
            del self.client
        super().close()

    def make(self) -> None:
        self.db.execute("create table pending_jobs (id bigserial primary key, job text not null)")

    def enqueue(self, jobs: Sequence[Job]) -> None:
        self.db.execute_many(
            "insert into pending_jobs (job) values (%s)", [(job.text,) for job in jobs]
        )

    def left(self) -> int:
        # The table first: what has left it since is in the list already.
        pending = int(self.db.rows("select count(*) from pending_jobs")[0][0])
        with _translated():
            return pending + int(self.client.llen(self.key))

    def attend(self, shift: Shift) -> None:
        locked = False
        while not shift.over.is_set():
            if not locked:
                locked = self.db.rows("select pg_try_advisory_lock(1)")[0][0]
            if not (locked and self._drain()):
                shift.rest()

    def step(self, shift: Shift) -> bool:
        with shift.claiming(), _translated():
            job = self.client.rpop(self.key)
        if job is None:
            return False
        shift.work(job)
        return True

    def _drain(self) -> bool:
        """Move a batch; whether there was something."""
        with self.db.transaction():
            rows = self.db.rows(
                "select id, job from pending_jobs order by id limit %s",
                int(self.settings["batch"]),
            )
            if rows:
                with _translated():
                    self.client.lpush(self.key, *(row.job for row in rows))
                self.db.execute(
                    "delete from pending_jobs where id = any(%s)", [row.id for row in rows]
                )
        return bool(rows)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Redis's errors mean that it cannot be used."""
    redis = importlib.import_module("redis")
    try:
        yield
    except redis.RedisError as error:
        raise StoreUnavailable(f"Redis: {error}") from error
