"""A short swarm."""

import random
from pathlib import Path

import pytest

from tests.swarm.plan import SHARES, drawn
from tests.swarm.swarm import Swarm

BIG = {"fail-over", "fail-over-behind", "move", "move-at-work", "move-to-clone"}


@pytest.mark.large
@pytest.mark.postgres
def test_a_short_swarm(tmp_path: Path) -> None:
    """Some seconds with some faults: the judge has nothing to complain of, and something was done."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    plan = [*drawn(seed, 12.0, [kind for kind in SHARES if kind not in BIG])]
    outcome = Swarm(seed, plan, 12.0, tmp_path / "swarm", rate=150.0).run()
    assert outcome.wrong == []
    assert outcome.jobs > 300
    assert sum(outcome.faults.values()) >= len(plan) - len(outcome.missed)
