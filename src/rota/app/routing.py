"""Where the jobs of a call are stored, of an app with several databases.

Whatever comes first decides: the database to which the caller's `conn=` leads, what `on(…)` has
said, the shard of the key that the args make, the shard of the handler that enqueues. Where nothing
does, the call is refused: a job on the wrong shard would lie beside the wrong rows.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import msgspec

from rota.app.enqueue import Enqueuer, written
from rota.app.enqueuing import FlowPlace
from rota.app.handle import FindCodec, JobHandle
from rota.app.here import HERE
from rota.app.middleware import Middleware
from rota.app.queues import Queues
from rota.app.shard import Shard
from rota.app.task import EnqueueCall, Task
from rota.app.tasks import Tasks
from rota.args import ResultCodec
from rota.database.database import Database
from rota.database.leading import aleading_to, leading_to
from rota.errors import ConfigError, StoreUnavailable
from rota.model.enqueued import Enqueued, Placing
from rota.model.job import JobId, JobRecord
from rota.model.keys import KeyTemplate
from rota.model.rendezvous import chosen
from rota.model.transfer import JobOnItsWay
from rota.store.execute import in_thread
from rota.store.protocol import Store


class Router:
    """Finds the shard of a call, and is to the tasks what one database's enqueuer is.

    Args:
        shards: By their names.
        queues: What is declared for the queues of all.
        tasks: The tasks of all.
        middleware: That of all.
        max_args_bytes: The largest args a job may have, as JSON.
        key: Which args make a job's key, if any do.
        pinned: The shard of single keys.

    Attributes:
        on: The shard that was said.
    """

    def __init__(
        self,
        shards: Mapping[str, Shard],
        queues: Queues,
        tasks: Tasks,
        middleware: Middleware,
        *,
        max_args_bytes: int | None,
        key: str | None,
        pinned: Mapping[str, str],
    ) -> None:
        self.queues = queues
        self.tasks = tasks
        self.middleware = middleware
        self.max_args_bytes = max_args_bytes
        self.on: ContextVar[str | None] = ContextVar("rota_on", default=None)
        self._shards = shards
        self._key = key
        self._pinned = pinned
        self._keys: dict[str, KeyTemplate | None] = {}

    # What a task asks ------------------------------------------------------------------------

    def home(self, call: EnqueueCall) -> Enqueuer:
        """What stores the jobs of this call.

        Raises:
            ConfigError: Nothing says where, or `conn` leads to none of the shards.
            ArgsError: The args do not fit the task, or make no key.
            StoreError: The database refuses.
        """
        if call.conn is None:
            return self._shards[self._said(call)].enqueuer
        return self._known(leading_to(call.conn, self._stores))

    async def ahome(self, call: EnqueueCall) -> Enqueuer:
        """`home` for async code."""
        if call.conn is None:
            return self._shards[self._said(call)].enqueuer
        return await in_thread(self._known, await aleading_to(call.conn, self._stores))

    def flow_home(self, flow: FlowPlace) -> Enqueuer:
        """What stores a flow, all jobs of which lie on one shard.

        Raises:
            ConfigError: Nothing says where, or the keys of its jobs belong to several shards.
            StoreError: The database refuses.
        """
        if flow.conn is None:
            return self._shards[self._said_of_flow(flow)].enqueuer
        return _agreed(flow, self._known(leading_to(flow.conn, self._stores)))

    async def aflow_home(self, flow: FlowPlace) -> Enqueuer:
        """`flow_home` for async code."""
        if flow.conn is None:
            return self._shards[self._said_of_flow(flow)].enqueuer
        found = await in_thread(self._known, await aleading_to(flow.conn, self._stores))
        return _agreed(flow, found)

    def enqueue(self, call: EnqueueCall) -> Enqueued:
        """Store the jobs of a call, all on one shard."""
        return self.home(call).enqueue(call)

    async def aenqueue(self, call: EnqueueCall) -> Enqueued:
        """`enqueue` for async code."""
        home = await self.ahome(call)
        return await home.aenqueue(call)

    def handle(
        self, job: JobId, codec: ResultCodec | FindCodec, placing: Placing
    ) -> JobHandle[Any]:
        """A handle on a job of the shard that one is on."""
        return self.here.enqueuer.handle(job, codec, placing)

    @property
    def database(self) -> Database:
        """That of the shard that one is on."""
        return self.here.database

    # Where one is ----------------------------------------------------------------------------

    @property
    def here(self) -> Shard:
        """The shard that was said, else that of the handler which runs.

        Raises:
            ConfigError: Neither is there.
        """
        name = self.on.get() or self._around()
        if name is None:
            message = f'say on which shard: `with rota.on("…"):`, with one of {self._names}'
            raise ConfigError(message)
        return self._shards[name]

    def key_of(self, job: JobRecord | JobOnItsWay) -> str | None:
        """The key of a job that was stored; None where its task has none, or is not known here."""
        task = self.tasks.get(job.task)
        template = None if task is None else self._template(task)
        if template is None:
            return None
        # SQL can store args that make no key.
        with suppress(TypeError, msgspec.MsgspecError):
            return template.key(job.args)
        return None

    @property
    def has_key(self) -> bool:
        """Whether any args make a key."""
        return self._key is not None

    def of(self, key: str) -> str:
        """The shard of a key."""
        return self._pinned.get(key) or chosen(key, self._shards)

    def _around(self) -> str | None:
        """The shard of the handler which runs, or of the subscriber that is told."""
        here = HERE.get()
        shard = None if here is None else self._shards.get(here.shard)
        return None if shard is None or shard.here != here else shard.name

    # What decides ----------------------------------------------------------------------------

    def _said(self, call: EnqueueCall) -> str:
        name = self.on.get() or self._by_key(call) or self._around()
        if name is None:
            message = (
                f"nothing says to which shard a job of {call.task.name!r} belongs: pass conn=, the connection with "
                f'your transaction, or enqueue within `with rota.on("…"):`, with one of {self._names}'
            )
            if self._key is not None:
                message += f"; the task lacks the parameters of the key {self._key!r}"
            raise ConfigError(message)
        return name

    def _by_key(self, call: EnqueueCall) -> str | None:
        """The shard of the key that the args make, if they do.

        Raises:
            ConfigError: The keys of the jobs of one call have several shards.
        """
        if self._template(call.task) is None:
            return None
        args = written(call, self.max_args_bytes, call.jobs)
        found = self.shards_of(call.task, args, ())
        if len(found) > 1:
            message = (
                f"the jobs of this call belong to several shards ({', '.join(sorted(found))}), and no "
                "transaction spans them: make one call for each shard (rota.of(key) says which)"
            )
            raise ConfigError(message)
        return next(iter(found), None)

    def shards_of(
        self, task: Task[..., Any, Any], args: Sequence[str], later: Collection[str]
    ) -> set[str]:
        """The shards of the keys that these args make, without parameters that get values later."""
        template = self._template(task)
        if template is None or not set(template.names).isdisjoint(later):
            return set()
        return {self.of(template.key(one)) for one in args}

    def _said_of_flow(self, flow: FlowPlace) -> str:
        """The shard of a flow that joins nobody's transaction."""
        name, shards = flow.name, flow.shards
        said = flow.on or self.on.get()
        if said is not None:
            return said
        if len(shards) > 1:
            nodes = ", ".join(f"{node!r} to {shard}" for shard, node in shards.items())
            message = (
                f"the jobs of flow {name!r} belong to several shards ({nodes}), and a flow lies on one: build one for each "
                f'shard (rota.of(key) says which), or say where all of it is to lie, rota.flow({name!r}, on="…")'
            )
            raise ConfigError(message)
        found = next(iter(shards), None) or self._around()
        if found is None:
            message = (
                f'nothing says to which shard flow {name!r} belongs: rota.flow({name!r}, on="…"), with one of '
                f"{self._names}, or conn=, the connection with your transaction"
            )
            raise ConfigError(message)
        return found

    def _template(self, task: Task[..., Any, Any]) -> KeyTemplate | None:
        """What makes the key of a task's jobs; None where it has not the parameters."""
        if self._key is None:
            return None
        if task.name not in self._keys:
            made = None
            with suppress(ConfigError):
                what = f"the key of task {task.name!r}"
                context = task.codec.context_parameter
                made = KeyTemplate(self._key, task.function, what, context=context)
            self._keys[task.name] = made
        return self._keys[task.name]

    @property
    def _stores(self) -> Mapping[str, Store]:
        """One of each kind of database that there is among the shards."""
        stores = (shard.database.store for shard in self._shards.values())
        return {store.name: store for store in stores}

    def _known(self, identity: str | None) -> Enqueuer:
        """That of the shard which is this database.

        Raises:
            ConfigError: None is, or two are.
            StoreUnavailable: One that may be it cannot be reached.
        """
        found, away = list[Shard](), list[StoreUnavailable]()
        for shard in self._shards.values():
            try:
                if shard.identity == identity:
                    found.append(shard)
            except StoreUnavailable as error:
                away.append(error)
        if len(found) == 1:
            return found[0].enqueuer
        if found:
            names = " and ".join(shard.name for shard in found)
            message = f"shards {names} are the same database; give each its own"
            raise ConfigError(message)
        if away:
            raise away[0]
        message = (
            f"conn leads to a database that is none of the shards {self._names}; a job can only join a transaction "
            "of its own database"
        )
        raise ConfigError(message)

    @property
    def _names(self) -> str:
        return ", ".join(self._shards)


def _agreed(flow: FlowPlace, home: Enqueuer) -> Enqueuer:
    """Where a flow's connection leads, which must not be another shard than was said."""
    if flow.on is not None and flow.on != home.shard:
        message = f"on={flow.on!r}, but conn leads to shard {home.shard}: leave one of them out"
        raise ConfigError(message)
    return home
