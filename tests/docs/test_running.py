"""The files in `deploy/`, which docs/operate/running.md shows: they fit the command, and each other."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from rota.cli.main import cli
from rota.worker.parts import LAST_WORDS
from tests.cli.calling import SHOP, read_until, started
from tests.docs.pages import ROOT, blocks
from tests.service.managers import listening

FOLDER = ROOT / "deploy"
UNIT = FOLDER / "rota@.service"


def options(words: list[str]) -> dict[str, Any]:
    """The options of a call of `rota`; refuses what the command refuses."""
    with click.Context(cli, info_name="rota") as root:
        name, command, rest = cli.resolve_command(root, words)
        assert command is not None
        return command.make_context(name, rest, parent=root).params


def unit() -> dict[str, str]:
    """The settings of the service."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names as they are
    parser.read(UNIT)
    return dict(parser["Service"])


def container() -> dict[str, list[str]]:
    """The commands of the Dockerfile."""
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    found = re.findall(
        r"^(?:\s+)?(HEALTHCHECK|ENTRYPOINT|CMD)\b[^\[\n]*(\[.*\])$", text, re.MULTILINE
    )
    commands = [(name, json.loads(words)) for name, words in found]
    assert [name for name, _ in commands] == ["ENTRYPOINT", "CMD", "CMD"]
    return dict(
        zip(("entrypoint", "command", "healthcheck"), (words for _, words in commands), strict=True)
    )


def manifests() -> dict[str, Any]:
    """Kubernetes' objects, by kind."""
    text = (FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def worker() -> tuple[dict[str, Any], dict[str, Any]]:
    """The workers' pod and its container."""
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    [only] = pod["containers"]
    return pod, only


def test_the_page_shows_each_file_as_a_whole() -> None:
    """No line is left out on the page."""
    shown = {
        block.marks["from"]: block.text
        for block in blocks(ROOT / "docs" / "operate" / "running.md")
        if "from" in block.marks
    }
    files = {str(file.relative_to(ROOT)): file.read_text("utf-8") for file in FOLDER.iterdir()}
    assert shown == files


def test_they_wait_for_longer_than_the_worker_takes() -> None:
    """What kills waits for the grace period and for the last settlements."""
    [_, *words] = shlex.split(unit()["ExecStart"])
    assert int(unit()["TimeoutStopSec"]) > options(words)["grace"] + LAST_WORDS
    pod, only = worker()
    assert pod["terminationGracePeriodSeconds"] > options(only["args"])["grace"] + LAST_WORDS
    page = (ROOT / "docs" / "operate" / "running.md").read_text(encoding="utf-8")
    grace = options(container()["command"])["grace"]
    assert [int(time) > grace + LAST_WORDS for time in re.findall(r"--timeout (\d+)", page)] == [
        True
    ] * 2


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """The unit has keys that systemd knows, and values that it understands."""
    if (analyze := shutil.which("systemd-analyze")) is None:
        pytest.skip("no systemd-analyze")
    text = UNIT.read_text(encoding="utf-8").replace("/srv/shop/.venv/bin/rota", sys.executable)
    (tmp_path / "rota@1.service").write_text(text.replace("User=shop\n", ""))
    command = [analyze, "verify", str(tmp_path / "rota@1.service")]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")


def test_the_units_command(tmp_path: Path) -> None:
    """The command of the unit tells systemd that it is ready, within the time it has."""
    service = unit()
    assert service["Type"] == "notify"
    program, *words = shlex.split(service["ExecStart"])
    assert program.endswith("/rota")
    (tmp_path / "shop.py").write_text(SHOP)
    microseconds = str(int(service["WatchdogSec"]) * 1_000_000)
    with (
        listening(tmp_path) as manager,
        started(
            *words, url=f"sqlite:///{tmp_path}/rota.db", cwd=tmp_path,
            NOTIFY_SOCKET=manager.name, WATCHDOG_USEC=microseconds,
        ) as process,
    ):  # fmt: skip
        assert "WATCHDOG=1" in manager.until("READY=1")
        process.terminate()
        manager.until("STOPPING=1")
        assert process.wait(30) == 0


def test_the_containers_command(tmp_path: Path) -> None:
    """The container's command answers its health check, which fails where nothing answers."""
    commands = container()
    assert commands["entrypoint"] == ["rota"]
    address = options(commands["command"])["health"]
    assert f"http://{address}/live" in " ".join(commands["healthcheck"])
    # Another port: this one may be taken here.
    words = [word.replace(str(address), "127.0.0.1:0") for word in commands["command"]]
    (tmp_path / "shop.py").write_text(SHOP)
    url = f"sqlite:///{tmp_path}/rota.db"
    with started(*words, url=url, cwd=tmp_path) as process:
        said = read_until(process.stderr, "health: ")
        [opened] = re.findall(r"http://([\d.:]+)/live", said)
        [_, *check] = [word.replace(str(address), opened) for word in commands["healthcheck"]]
        assert subprocess.run([sys.executable, *check], check=False, timeout=30).returncode == 0
        process.terminate()
        assert process.wait(30) == 0
    ended = subprocess.run([sys.executable, *check], capture_output=True, check=False, timeout=30)
    assert ended.returncode == 1


def test_the_manifest() -> None:
    """The probes ask where the worker answers, from outside of the pod."""
    _, only = worker()
    health = options(only["args"])["health"]
    [port] = only["ports"]
    assert port["containerPort"] == health.port
    assert health.host == "0.0.0.0"  # noqa: S104 - a pod's own network
    asked = {
        probe: only[f"{probe}Probe"]["httpGet"] for probe in ("startup", "liveness", "readiness")
    }
    assert {get["port"] for get in asked.values()} == {port["name"]}
    assert {probe: get["path"] for probe, get in asked.items()} == {
        "startup": "/live", "liveness": "/live", "readiness": "/ready",
    }  # fmt: skip
    deployment = manifests()["Deployment"]["spec"]
    assert deployment["selector"]["matchLabels"] == deployment["template"]["metadata"]["labels"]
    [migrate] = manifests()["Job"]["spec"]["template"]["spec"]["containers"]
    assert options(migrate["args"]) is not None
    for one in (only, migrate):
        assert [variable["name"] for variable in one["env"]] == ["ROTA_DATABASE_URL"]
