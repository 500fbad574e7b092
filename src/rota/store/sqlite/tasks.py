"""Tasks that not all workers know: their jobs go to lanes from which only those claim that do."""

from collections.abc import Collection, Sequence

from rota.store.operation import Steps
from rota.store.sqlite.statements import json_list, sql

PASS_ON_LANES = sql("settle/pass_on_lanes")
PASS_ON = sql("settle/pass_on")


def known(tasks: Collection[str] | None) -> str | None:
    """The tasks that a worker knows, as the statements want them; `None`: it does not say."""
    return None if tasks is None else json_list([*tasks])


def pass_on(jobs: Sequence[int]) -> Steps[None]:
    """Put jobs that are available again into the lanes of their tasks."""
    if jobs:
        yield PASS_ON_LANES(jobs=json_list(jobs))
        yield PASS_ON(jobs=json_list(jobs))
