"""`rota doctor`: one screen that says what is wrong and what to do."""

import shutil
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from rota.cli.each_shard import each_shard
from rota.cli.options import urls_option
from rota.terminal.advice import addressed
from rota.terminal.output import harmless, json_option, on_terminal, say, say_json

if TYPE_CHECKING:
    from rota.doctor.finding import Finding, Severity
    from rota.store.health import Facts

MARGIN = 10
"""Columns before the text: as wide as the longest severity."""

NARROWEST, WIDEST = 60, 100
"""Columns within which text is wrapped."""

COLOURS = {"critical": "red", "warning": "yellow", "note": "cyan", "ok": "green"}


@click.command()
@click.option(
    "--check", "thorough", is_flag=True, help="On SQLite, also check the whole file for damage."
)
@urls_option
@json_option
@each_shard()
def doctor(*, thorough: bool, url: str | None, as_json: bool) -> None:
    """Find out what is wrong with the database, and what to do about it.

    Looks at old snapshots and their holders, locks, workers, queues, timers, the sizes and dead
    rows of Rota's tables, settings, clocks, and whether NOTIFY arrives. Changes nothing and counts
    no jobs, so it is quick on a large database too. The worst findings come first, each with one
    next step.

    \b
    Exit status:
      0  in order, or nothing worse than notes
      1  a warning
      2  something critical (or a wrong command line: then stdout is empty)
      3  the database cannot be reached
      4  there is no such SQLite file

    \b
    Examples:
      rota doctor --url postgresql:///shop
      rota doctor --json | jq '.findings[] | select(.severity == "critical")'
    """
    from rota.cli.database import connected, must_exist
    from rota.doctor.examine import examine
    from rota.doctor.finding import Severity, worst
    from rota.errors import StoreError, StoreUnavailable
    from rota.store.opening import default_url
    from rota.store.url import shown
    from rota.terminal.exits import ALARMED, WARNED, Failure

    address = harmless(shown(url or default_url()))
    with connected(url) as (store, connection):
        must_exist(store)
        try:
            report = examine(store, connection, thorough=thorough)
        except StoreUnavailable:
            raise
        except StoreError as error:  # a damaged file, or no SQLite file
            raise Failure(str(error), ALARMED) from error
    findings = [replace(finding, advice=addressed(finding.advice)) for finding in report.findings]
    severity = worst(findings)
    if as_json:
        say_json(_document(address, severity, findings, report.facts))
    elif on_terminal():
        _screen(address, findings)
    else:
        _lines(findings)
    codes = {Severity.WARNING: WARNED, Severity.CRITICAL: ALARMED}
    click.get_current_context().exit(codes.get(severity, 0))


def _document(
    address: str, severity: "Severity", findings: "list[Finding]", facts: "Facts"
) -> dict[str, Any]:
    return {
        "url": address,
        "severity": severity.name.lower(),
        "findings": [
            {
                "severity": finding.severity.name.lower(),
                "subject": finding.subject,
                "title": finding.title,
                "detail": finding.detail,
                "advice": finding.advice,
            }
            for finding in findings
        ],
        "facts": facts,
    }


def _lines(findings: "list[Finding]") -> None:
    """Tabs between severity, subject, title, detail and advice, one finding a line."""
    for finding in findings:
        words = (
            finding.severity.name.lower(),
            finding.subject,
            finding.title,
            finding.detail,
            finding.advice,
        )
        say("\t".join(harmless(word) for word in words).rstrip("\t"))


def _screen(address: str, findings: "list[Finding]") -> None:
    from rota.doctor.finding import Severity

    width = max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))
    wrong = [finding for finding in findings if finding.severity > Severity.OK]
    fine = [finding for finding in findings if finding.severity == Severity.OK]
    say(f"{address}: {_summary(wrong)}", bold=True)
    for finding in wrong:
        say()
        _entry(finding, width)
    if fine:
        say()
    for finding in fine:
        _entry(finding, width)


def _summary(wrong: "list[Finding]") -> str:
    counts: dict[str, int] = {}
    for finding in wrong:
        name = finding.severity.name.lower()
        counts[name] = counts.get(name, 0) + 1
    several = {"warning": "warnings", "note": "notes"}
    words = [f"{n} {several.get(name, name) if n > 1 else name}" for name, n in counts.items()]
    return ", ".join(words) or "all in order"


def _entry(finding: "Finding", width: int) -> None:
    name = finding.severity.name.lower()
    margin = " " * MARGIN
    label = click.style(name.ljust(MARGIN), fg=COLOURS[name], bold=name == "critical")
    title, *more = textwrap.wrap(harmless(finding.title), width - MARGIN) or [""]
    say(label + click.style(title, bold=name != "ok"))
    for line in more:
        say(margin + line)
    for line in textwrap.wrap(harmless(finding.detail), width - MARGIN):
        say(margin + line)
    if finding.advice:
        # Not wrapped: it is to be copied.
        say(margin + click.style("→ " + harmless(finding.advice), fg="cyan"))
