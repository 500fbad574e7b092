"""The reference of metrics, from the calls that make them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from website.repository import ROOT
from website.staging import Pages

HEAD = """# Metrics

For whoever makes alerts and charts in Prometheus: every metric with its labels. Times are seconds, sizes are bytes, and what ends with
`_total` only grows. [Metrics, traces, errors and logs](../operate/observability.md) explains them.
"""

SOURCES = (
    ("metrics/families.py", "Of the database", "By `rota metrics`, once for all workers."),
    ("prometheus.py", "Of a worker", "By `rota.prometheus`, in each worker."),
)

KINDS = {
    "GaugeMetricFamily": "gauge", "_gauge": "gauge", "_each": "gauge", "Gauge": "gauge",
    "CounterMetricFamily": "counter", "_total": "counter", "Counter": "counter", "histogram": "histogram",
}  # fmt: skip
"""What the functions make that are called with a name."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, as Prometheus shows it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    says: str


def pages() -> Pages:
    """One page."""
    parts = [HEAD]
    for file, title, says in SOURCES:
        rows = [
            f"| `{metric.name}` | {metric.kind} | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.says} |"
            for metric in metrics(file)
        ]
        parts.append(
            f"## {title}\n\n{says}\n\n| metric | kind | labels | |\n|---|---|---|---|\n"
            + "\n".join(rows)
            + "\n"
        )
    return {"reference/metrics": "\n".join(parts)}


def metrics(file: str) -> Iterator[Metric]:
    """The metrics that a module makes."""
    tree = ast.parse((ROOT / "src" / "rota" / file).read_text(encoding="utf-8"))
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in KINDS:
            name, says, *others = [*call.args, None, None]
            if isinstance(name, ast.Constant) and isinstance(says, ast.Constant):
                kind = KINDS[call.func.id]
                total = (
                    "_total" if kind == "counter" and not str(name.value).endswith("_total") else ""
                )
                given = [each for each in others if each is not None]
                yield Metric(f"{name.value}{total}", kind, labels(call, given), str(says.value))


def labels(call: ast.Call, others: list[ast.expr]) -> tuple[str, ...]:
    """The labels of a metric: texts behind its words, or a tuple of them."""
    if isinstance(call.func, ast.Name) and call.func.id == "_total":
        return ("queue",)
    given = [*others, *(keyword.value for keyword in call.keywords if keyword.arg == "labels")]
    texts = [
        text for each in given for text in (each.elts if isinstance(each, ast.Tuple) else [each])
    ]
    return tuple(
        text.value
        for text in texts
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
    )


def untold() -> list[str]:
    """Names of metrics that the code has and the page has not, and metrics without words."""
    missing = []
    for file, _, _ in SOURCES:
        known = {metric.name.removesuffix("_total"): metric.says for metric in metrics(file)}
        tree = ast.parse((ROOT / "src" / "rota" / file).read_text(encoding="utf-8"))
        for each in ast.walk(tree):
            if (
                isinstance(each, ast.Constant)
                and isinstance(each.value, str)
                and each.value.startswith("rota_")
            ):
                name = each.value.removesuffix("_total")
                if not known.get(name):
                    missing.append(name)
    return missing
