"""What axe-core finds wrong with a page; its file in `vendor/` is for tests alone."""

from functools import cache
from pathlib import Path

from tests.browser.chromium import Chromium

VENDOR = Path(__file__).parent / "vendor"

GRAVE = ("serious", "critical")

RUN = """
const [only, done] = arguments;
const options = { resultTypes: ["violations"], ...(only && { runOnly: { type: "rule", values: only } }) };
axe.run(document, options).then(
  (found) => done(found.violations.map((one) => ({
    impact: one.impact, rule: one.id, where: one.nodes.map((node) => `${node.target}: ${node.failureSummary}`),
  }))),
  (error) => done([{ impact: "critical", rule: String(error), where: [] }]),
);
"""


def barriers(browser: Chromium, *rules: str) -> list[str]:
    """What is serious or critical on the page that is open, by these rules or by all."""
    if not browser.run("return typeof axe === 'object'"):
        browser.run(_script())
    found = browser.run_until_told(RUN, list(rules) or None)
    return [
        f"{one['rule']} at {where}"
        for one in found
        if one["impact"] in GRAVE
        for where in one["where"] or [""]
    ]


@cache
def _script() -> str:
    return (VENDOR / "axe.min.js").read_text(encoding="utf-8")
