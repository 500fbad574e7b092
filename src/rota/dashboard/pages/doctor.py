"""What `rota doctor` finds, with the next steps."""

from rota.dashboard.message import Page
from rota.dashboard.routes import Call
from rota.doctor.finding import Severity


def doctor(call: Call) -> Page:
    """The findings, the worst first."""
    found = [
        {
            "severity": finding.severity.name.lower(),
            "subject": finding.subject,
            "title": finding.title,
            "detail": finding.detail,
            "advice": finding.advice,
        }
        for finding in call.looks.findings()
    ]
    bad = [one for one in found if one["severity"] != Severity.OK.name.lower()]
    fine = [one for one in found if one["severity"] == Severity.OK.name.lower()]
    return Page("doctor.html", "Doctor", {"findings": found}, {"bad": bad, "fine": fine})
