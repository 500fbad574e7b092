"""What a worker and a cluster's nodes exchange: bundles of orders, and reports on them, as JSON."""

import msgspec

from rota.model.notes import Note
from rota.worker.executors.remote import Answer, Order


class Bundle(msgspec.Struct):
    """Jobs that a node runs one after another, in one task of its engine.

    `key` is like that of no other bundle. `node` is the process for which it is meant, where the
    worker has chosen one. `watched`: the worker wants to hear when it begins.
    """

    key: str
    orders: list[Order]
    node: str | None = None
    watched: bool = False


class Ran(msgspec.Struct):
    """How the job at a place of a bundle has ended, and after how many seconds."""

    place: int
    seconds: float
    answer: Answer


class Report(msgspec.Struct):
    """What has become of a bundle since the last report, of which the first says that it has begun.

    `running` is the place of the job that runs. Those of `withdrawn` have not begun, and will not.
    """

    key: str
    ran: list[Ran] = []
    withdrawn: list[int] = []
    notes: list[Note] = []
    running: int | None = None
