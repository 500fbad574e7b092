"""The files for Prometheus and Grafana in `contrib/`: they ask for what there is."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from rota import Rota
from rota.metrics.families import families, of_shards
from rota.prometheus import instrument
from rota.top.aside import Answer
from tests.docs.pages import ROOT
from tests.metrics.test_families import seen

ALERTS = ROOT / "contrib" / "prometheus-alerts.yaml"
BOARD = ROOT / "contrib" / "grafana.json"
PAGE = ROOT / "docs" / "operate" / "observability.md"

METRIC = re.compile(r"\b(rota_\w+)(?:\{([^}]*)\})?")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
GROUPED = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")


def exported() -> dict[str, set[str]]:
    """The names of all samples there can be, and their labels."""
    registry = CollectorRegistry()
    with Rota("sqlite:///never-opened.db") as app:
        instrument(app, registry=registry)
    found: dict[str, set[str]] = {}
    up = of_shards({"eu": Answer(None, "away")})
    for family in (*registry.collect(), *families(seen()), *up):
        labels = {label for sample in family.samples for label in sample.labels}
        match family.type:
            case "histogram":
                names = [f"{family.name}_{part}" for part in ("bucket", "sum", "count")]
            case "counter":
                names = [f"{family.name}_total"]
            case _:
                names = [family.name]
        for name in names:
            found[name] = labels | LABELS.get(family.name, set())
    return found


LABELS = {
    "rota_jobs": {"queue", "state"},
    "rota_jobs_appended": {"queue"},
    "rota_jobs_claimed": {"queue"},
    "rota_queue_paused": {"queue"},
    "rota_queue_workers": {"queue"},
    "rota_queue_oldest_available_seconds": {"queue"},
    "rota_cron_lateness_seconds": {"entry"},
    "rota_findings": {"severity"},
    "rota_job_wait_seconds": {"queue", "task", "le"},
    "rota_job_run_seconds": {"queue", "task", "le"},
    "rota_jobs_settled": {"queue", "task", "outcome"},
    "rota_claim_seconds": {"le"},
    "rota_settle_seconds": {"le"},
}
"""What a metric without samples cannot show."""


def expressions() -> Iterator[str]:
    """Every expression of the alerts and of the panels."""
    for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    for panel in json.loads(BOARD.read_text(encoding="utf-8"))["panels"]:
        yield from (target["expr"] for target in panel["targets"])


@pytest.mark.parametrize("expression", list(expressions()))
def test_what_is_asked_for_exists(expression: str) -> None:
    """Each metric is exported under that name, with the labels that are named."""
    known = exported()
    asked = METRIC.findall(expression)
    assert asked
    for name, matchers in asked:
        assert name in known, expression
        assert set(LABEL.findall(matchers)) <= known[name], expression
    everywhere = set().union(*(known[name] for name, _ in asked)) | {"instance", "shard"}
    for grouped in GROUPED.findall(expression):
        assert {label.strip() for label in grouped.split(",")} <= everywhere, expression


def test_the_page_has_every_metric() -> None:
    """Each one stands in the table of the page, with its labels, and the table has no others."""
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `rota_")
    ]
    documented = {
        name: set(re.findall(r"`(\w+)`", row[1]))
        for row in rows
        for name in re.findall(r"`(rota_\w+)`", row[0])
    }
    known: dict[str, set[str]] = {}
    for name, labels in exported().items():
        known[re.sub(r"_(bucket|sum|count)$", "", name)] = labels - {"le"}
    assert documented == known


def test_the_board() -> None:
    """Its panels have ids of their own, and do not lie upon each other."""
    panels: list[Any] = json.loads(BOARD.read_text(encoding="utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)


UNIT = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'rota_look_seconds', values: '0.01x30'}}
      - {{series: 'rota_queue_workers{{queue="mail"}}', values: '0x30'}}
      - {{series: 'rota_queue_workers{{queue="still"}}', values: '0x30'}}
      - {{series: 'rota_queue_paused{{queue="mail"}}', values: '0x30'}}
      - {{series: 'rota_queue_paused{{queue="still"}}', values: '1x30'}}
      - {{series: 'rota_jobs{{queue="mail",state="available"}}', values: '5x30'}}
      - {{series: 'rota_jobs{{queue="still",state="available"}}', values: '5x30'}}
      - {{series: 'rota_jobs{{queue="mail",state="discarded"}}', values: '0+2x30'}}
      - {{series: 'rota_shard_up{{shard="eu"}}', values: '1x30'}}
      - {{series: 'rota_shard_up{{shard="us"}}', values: '0x30'}}
      - {{series: 'rota_queue_workers{{shard="eu",queue="bills"}}', values: '0x30'}}
      - {{series: 'rota_queue_paused{{shard="eu",queue="bills"}}', values: '1x30'}}
      - {{series: 'rota_queue_paused{{shard="us",queue="bills"}}', values: '0x30'}}
      - {{series: 'rota_jobs{{shard="eu",queue="bills",state="available"}}', values: '5x30'}}
      - {{series: 'rota_cron_lateness_seconds{{entry="digest"}}', values: '0+60x30'}}
    alert_rule_test:
      - {{eval_time: 20m, alertname: RotaMetricsMissing, exp_alerts: []}}
      - eval_time: 20m
        alertname: RotaShardAway
        exp_alerts:
          - exp_labels: {{severity: critical, shard: us}}
            exp_annotations:
              summary: The shard us does not answer
              description: "Its jobs wait; the other shards go on. `rota doctor --shard us` says why."
      - eval_time: 20m
        alertname: RotaQueueUnattended
        exp_alerts:
          - exp_labels: {{severity: critical, queue: mail}}
            exp_annotations:
              summary: No worker serves mail, and jobs wait in it
              description: "Start one: `rota worker MODULE:APP --queue mail`."
      - eval_time: 20m
        alertname: RotaJobsDiscarded
        exp_alerts:
          - exp_labels: {{severity: warning, queue: mail, state: discarded}}
            exp_annotations:
              summary: 30 more discarded jobs of mail within 15 minutes
              description: "What they failed with: `rota jobs list --state discarded --queue mail`."
      - eval_time: 20m
        alertname: RotaCronLate
        exp_alerts:
          - exp_labels: {{severity: warning, entry: digest}}
            exp_annotations:
              summary: The cron entry digest has been due for 20m 0s
              description: "No worker makes its jobs: `rota workers list`."
"""


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool")
def test_promtool_likes_them(tmp_path: Path) -> None:
    """The rules can be read, and they fire for what they are about and for nothing else."""
    cases = tmp_path / "cases.yaml"
    cases.write_text(UNIT.format(rules=ALERTS), encoding="utf-8")
    commands: list[list[str | Path]] = [["check", "rules", ALERTS], ["test", "rules", cases]]
    for words in commands:
        found = subprocess.run(
            ["promtool", *words],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stdout + found.stderr
