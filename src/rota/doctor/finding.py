"""A finding, and how bad it is."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How bad a finding is; also the order in which they are shown."""

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
        subject: What it is about, one word or two that never change, for programs.
        title: The finding in one line.
        detail: Since when, how much, what it costs, and what to know before the next step.
        advice: The next step, if there is one: a command or a statement to copy, and nothing else.
    """

    severity: Severity
    subject: str
    title: str
    detail: str = ""
    advice: str = ""


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """The most severe ones first, otherwise in their order."""
    return sorted(findings, key=lambda finding: -finding.severity)


def worst(findings: Iterable[Finding]) -> Severity:
    """How bad it is altogether."""
    return max((finding.severity for finding in findings), default=Severity.OK)


def few(findings: list[Finding], limit: int, rest: str) -> list[Finding]:
    """At most `limit` of them, the worst; one more line says how many there are besides."""
    found = worst_first(findings)
    if len(found) <= limit + 1:
        return found
    left = found[limit:]
    one = Finding(left[0].severity, left[0].subject, f"and {len(left)} more {rest}")
    return [*found[:limit], one]
