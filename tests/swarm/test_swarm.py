"""A short swarm: that it still runs, and that it is well."""

from pathlib import Path

import pytest

from rota import ConfigError
from rota.measure.servers import find_binaries
from tests.swarm.plan import SHARES, drawn
from tests.swarm.swarm import Swarm

SEED = 10
SECONDS = 10.0
QUICK = [kind for kind in SHARES if not kind.startswith(("fail-over", "move"))]
"""Kinds of faults that need no further server."""


@pytest.mark.large
@pytest.mark.postgres
def test_a_short_swarm(tmp_path: Path) -> None:
    """All faults of a plan happen, hundreds of jobs run, and the judge has nothing to complain of."""
    try:
        find_binaries()
    except ConfigError as error:
        pytest.skip(f"no PostgreSQL: {error}")
    plan = [*drawn(SEED, SECONDS, QUICK)]
    outcome = Swarm(SEED, plan, SECONDS, tmp_path / "swarm", rate=100.0, long=1000).run()
    assert outcome.wrong == []
    assert outcome.jobs > 200
    assert sum(outcome.faults.values()) + outcome.missed.total() == len(plan) > 5
