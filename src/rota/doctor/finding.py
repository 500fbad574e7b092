"""A finding and its severity."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How bad a finding is; the worst are shown first."""

    OK = 0
    """Looked at, and in order."""
    NOTE = 1
    """Worth knowing; nothing has to be done tonight."""
    WARNING = 2
    """It will hurt, or hurts a little already."""
    CRITICAL = 3
    """Jobs do not run, are at risk, or the database is about to stop."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found.

    Attributes:
        subject: What it is about, in one or two words that never change, for programs.
        title: The finding in one line.
        detail: Since when, how much, what it costs, and what to know before the next step.
        advice: The next step, if there is any: a command or a statement to copy, nothing else.
    """

    severity: Severity
    subject: str
    title: str
    detail: str = ""
    advice: str = ""


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """The most severe findings first, otherwise in their order."""
    return sorted(findings, key=lambda finding: -finding.severity)


def worst(findings: Iterable[Finding]) -> Severity:
    """The highest severity of all findings."""
    return max((finding.severity for finding in findings), default=Severity.OK)


def few(findings: list[Finding], limit: int, rest: str) -> list[Finding]:
    """The worst `limit` findings; one more says how many `rest` there are besides."""
    found = worst_first(findings)
    if len(found) <= limit + 1:
        return found
    left = found[limit:]
    more = Finding(left[0].severity, left[0].subject, f"and {len(left)} more {rest}")
    return [*found[:limit], more]
