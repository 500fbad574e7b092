"""Successors: jobs that are enqueued in the transaction which writes that others have ended.

Both stores go through here, so that the fence decides: what was refused has no successor.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from rota.model.enqueued import Enqueued
from rota.model.job import Following, JobRecord, Keys, Order
from rota.store.operation import Steps, surroundings

Append = Callable[[Order], Steps[Enqueued]]
"""A store's steps of an enqueue, as a part of a larger transaction."""

Follow = Callable[[Sequence[JobRecord]], Sequence[Order]]
"""Says which successors discarded jobs have, where no worker settles them: at a rescue."""


def following(successors: Iterable[Order | None], append: Append) -> Steps[list[Following]]:
    """Enqueue successors, those of one spec together."""
    orders = gathered(successor for successor in successors if successor is not None)
    if not orders:
        return []
    # Without a notification where the transaction is to be prepared: a worker finds them by
    # polling.
    quiet = not (yield from surroundings()).notify
    done = []
    for order in orders:
        spec = replace(order.spec, wake=False) if quiet else order.spec
        stored = yield from append(order._replace(spec=spec))
        done.append(Following(spec.task, spec.queue, tuple(stored.created)))
    return done


def gathered(orders: Iterable[Order]) -> list[Order]:
    """The same jobs in fewer orders, by task: settlers that enqueue the same keys do so in one order."""
    groups: dict[tuple[str, str | None], list[list[Order]]] = {}
    for order in orders:
        alike = groups.setdefault((order.spec.task, order.spec.headers), [])
        group = next((group for group in alike if group[0].spec == order.spec), None)
        if group is None:
            alike.append([order])
        else:
            group.append(order)
    names = sorted(groups, key=lambda name: (name[0], name[1] or ""))
    return [_together(group) for name in names for group in groups[name]]


def _together(group: Sequence[Order]) -> Order:
    args = [text for order in group for text in order.args]
    keys = [order.keys for order in group if order.keys is not None]
    if not keys:
        return Order(group[0].spec, args)
    return Order(group[0].spec, args, Keys(*map(_joined, zip(*keys, strict=True))))


def _joined(parts: Sequence[Sequence[str] | None]) -> list[str] | None:
    """The keys of one sort: all of these jobs have them, or none."""
    return None if parts[0] is None else [key for part in parts for key in part or ()]
