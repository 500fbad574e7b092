"""The worker's side of runs in other processes: orders out, answers that come back or do not."""

import asyncio

from rota.worker.call import Call
from rota.worker.executors.remote import Answer, Holder, Order
from rota.worker.job_transactions import JobTransactions


class RemoteCalls:
    """What all executors that are elsewhere have in common."""

    def __init__(self, effects: JobTransactions) -> None:
        self._effects = effects

    def order(self, call: Call) -> Order:
        """What another process is asked to do for a call."""
        order = Order.of(call.task, call.job, call.home.number)
        order.sent = call.home.app.middleware.sent()
        if call.task.codec.context_parameter is not None:
            order.holder = Holder(self._effects.session(call.job), self._effects.database)
        return order

    def value(self, call: Call, answer: Answer) -> str | None:
        """What the call with this answer came to: the JSON text of its result, if that was wanted.

        Raises:
            Snooze: The handler said so; likewise Again, Retry and Discard.
            RemoteError: The handler raised an exception.
            CancelledError: It was told to stop, and has noticed.
        """
        if answer.transacted is not None:
            self._effects.absorb(call.job, answer.transacted)
        if answer.noticed and call.stop is not None:
            raise asyncio.CancelledError
        return answer.value()

    def lose(self, call: Call) -> None:
        """No answer will come, or it is not waited for.

        The handler's transaction may be committed, or may be yet.
        """
        if call.task.codec.context_parameter is not None:
            self._effects.lose(call.job)
