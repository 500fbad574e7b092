"""The first page where several databases are one app: each of them, and the sum."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rota.dashboard.looks import Looks, Seen
from rota.dashboard.message import Page, Request
from rota.dashboard.pages import overview
from rota.doctor.finding import Severity
from rota.model.states import State
from rota.store.serving import alive
from rota.top.aside import Answer, Question, answers

SHOWN = 50
"""Queues on this page: those with the most jobs that wait."""


APART = frozenset({"queues", "more_queues", "notices"})
"""What a shard's own first page says, and this page says of all together."""


class CallOfAll(NamedTuple):
    """What a page about all databases gets."""

    request: Request
    parts: Mapping[str, str]


class Facts(NamedTuple):
    """What is known of one shard."""

    seen: Seen
    figures: Mapping[str, Any]
    findings: Mapping[str, int]


class Everything:
    """The page; it asks all shards at once, and one that does not answer keeps nobody waiting.

    Args:
        looks: At the database of each shard, by name.
    """

    def __init__(self, looks: Mapping[str, Looks]) -> None:
        self._questions = {name: Question(_asking(each)) for name, each in looks.items()}

    def page(self, call: CallOfAll) -> Page:
        """Each shard, the sum of those that answer, and what needs a person."""
        del call
        found = answers(self._questions)
        known = {name: answer.value for name, answer in found.items() if answer.value is not None}
        data = {
            "shards": [_shard(name, answer) for name, answer in found.items()],
            "sum": {
                **_sums(facts.figures for facts in known.values()),
                # A worker that serves several shards is one worker.
                "workers": len(
                    {
                        worker.worker
                        for facts in known.values()
                        for worker in facts.seen.snapshot.workers
                        if alive(worker)
                    }
                ),
                "queues": (queues := _queues(known))[:SHOWN],
                "more_queues": max(len(queues) - SHOWN, 0),
            },
            "notices": _notices(known),
            "away": [name for name in found if name not in known],
        }
        return Page("everything.html", "All shards", data)


def _asking(looks: Looks) -> "Any":
    def ask() -> Facts:
        bad = [finding for finding in looks.findings() if finding.severity >= Severity.WARNING]
        counts = {
            severity.name.lower(): sum(one.severity is severity for one in bad)
            for severity in (Severity.CRITICAL, Severity.WARNING)
        }
        return Facts(looks.now(), overview.figures(looks), counts)

    return ask


def _shard(name: str, answer: Answer[Facts]) -> dict[str, Any]:
    if (facts := answer.value) is None:
        return {"name": name, "failure": answer.failure}
    own = {key: value for key, value in facts.figures.items() if key not in APART}
    return {"name": name, "failure": "", **own, "findings": facts.findings}


def _notices(known: Mapping[str, Facts]) -> list[dict[str, str]]:
    """What needs a person on any shard, the worst first."""
    every = [
        {**notice, "shard": name}
        for name, facts in known.items()
        for notice in facts.figures["notices"]
    ]
    return sorted(every, key=lambda notice: -Severity[notice["severity"].upper()])


def _sums(every: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of all shards together; those that no shard knows are `None`."""
    known = list(every)

    def added(key: str) -> float | None:
        values = [figures[key] for figures in known if figures[key] is not None]
        return sum(values) if values else None

    return {
        "jobs": {
            state.value: sum(figures["jobs"][state.value] for figures in known) for state in State
        },
        "in_per_second": added("in_per_second"),
        "out_per_second": added("out_per_second"),
        "oldest_seconds": max((each["oldest_seconds"] or 0 for each in known), default=0) or None,
        "held": added("held") or 0,
    }


def _queues(known: Mapping[str, Facts]) -> list[dict[str, Any]]:
    """The queues of all shards, added up by name; those with the most jobs that wait first."""
    found: dict[str, dict[str, Any]] = {}
    for shard, facts in known.items():
        for row in facts.seen.rows:
            queue = found.setdefault(
                row.name,
                {
                    "name": row.name,
                    "jobs": {state.value: 0 for state in State},
                    "in_per_second": None,
                    "out_per_second": None,
                    "oldest_seconds": None,
                    "shards": [],
                },
            )
            for state in State:
                queue["jobs"][state.value] += row.counts.get(state, 0)
            if row.rates is not None:
                queue["in_per_second"] = (queue["in_per_second"] or 0) + row.rates.appended
                queue["out_per_second"] = (queue["out_per_second"] or 0) + row.rates.claimed
            queue["oldest_seconds"] = max(queue["oldest_seconds"] or 0, row.oldest or 0) or None
            queue["shards"].append({"name": shard, "paused": row.paused})
    return sorted(found.values(), key=lambda queue: (-queue["jobs"]["available"], queue["name"]))
