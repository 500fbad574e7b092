"""What handlers are called with in the worker's own process."""

from rota.app.context import BatchContext, Context
from rota.app.results import put
from rota.model.notes import Notes
from rota.worker.call import Call
from rota.worker.job_transactions import JobTransactions

Given = tuple[list[object], dict[str, object]]
"""By place and by name."""


class Arguments:
    """Reads the args of calls, and makes their contexts.

    Args:
        notes: Takes what handlers tell.
        effects: Makes the transactions of handlers, and what they remember.
    """

    def __init__(self, notes: Notes, effects: JobTransactions) -> None:
        self._notes = notes
        self._effects = effects

    def of(self, call: Call) -> Given:
        """What the handler is called with.

        Raises:
            ArgsError: The args do not fit the handler.
            ConfigError: It needs a resource that no lifespan yields.
        """
        if call.batch is not None:
            return call.batch.arguments()
        codec = call.task.codec
        args, kwargs = codec.decode(call.job.args)
        if codec.more:
            if codec.context_parameter is not None:
                kwargs[codec.context_parameter] = self.context(call)
            if codec.needs:
                kwargs.update(call.home.resources.of(call.task))
        if call.pages:
            put(codec.names, (args, kwargs), call.pages)
        return args, kwargs

    def context(self, call: Call) -> Context | BatchContext:
        """The call's context, made when it is first asked for."""
        if call.context is None:
            call.context = Context(
                call.job,
                notes=self._notes,
                transact=self._effects.transact,
                remember=self._effects.remember,
                grafts=self._effects.grafts,
                resources=call.home.resources,
                soft_timeout=call.task.soft_timeout,
            )
        return call.context
