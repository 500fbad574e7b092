"""What a forwarder does with claimed jobs, and what becomes of each."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from rota.errors import ArgsError
from rota.model.chosen import never
from rota.model.job import ClaimedJob, JobId
from rota.model.settlement import Settlement, completed, decide, passed_on
from rota.relay.message import Message, message_of
from rota.relay.relay import Relay
from rota.relay.target import Sender


class CannotSend(Exception):
    """The target is not there, or refuses: what its client has raised."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


class Sending:
    """Sends claimed jobs, and says what becomes of each; see `rota.store.relaying.Hand`."""

    def __init__(self, relay: Relay, sender: Sender) -> None:
        self.sender = sender
        self._relay = relay
        self._jobs: Sequence[ClaimedJob] = ()
        self._settlements: Sequence[Settlement] = ()

    def prepare(self) -> None:
        """Let the sender find out what it has to know.

        Raises:
            CannotSend: It could not.
        """
        try:
            self.sender.prepare()
        except Exception as error:
            raise CannotSend(error) from error

    def __call__(self, jobs: Sequence[ClaimedJob]) -> Sequence[Settlement]:
        """Send the jobs in their order.

        Raises:
            CannotSend: Perhaps none has come through.
        """
        messages: list[Message] = []
        faults: dict[JobId, Exception] = {}
        for job in jobs:
            if job.task == self._relay.name:
                try:
                    messages.append(message_of(job))
                except ArgsError as error:
                    faults[job.id] = error
        if messages:
            try:
                faults |= self.sender.send(messages)
            except Exception as error:
                raise CannotSend(error) from error
        self._jobs = jobs
        self._settlements = [self._settlement(job, faults) for job in jobs]
        return self._settlements

    def settled(self) -> Sequence[tuple[ClaimedJob, Settlement]]:
        """What was made of the jobs of the last call."""
        return list(zip(self._jobs, self._settlements, strict=True))

    def _settlement(self, job: ClaimedJob, faults: Mapping[JobId, Exception]) -> Settlement:
        if job.task != self._relay.name:
            return passed_on(job)
        keep = self._relay.keeps[job.queue]
        if job.id in faults:
            return decide(job, faults[job.id], never, keep.discarded, now=datetime.now(UTC))
        return completed(job, keep.completed)
