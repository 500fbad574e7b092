"""`rota bench hold --day`: what a day under one snapshot does to each statement of a worker."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rota.measure.bench import day
from rota.measure.bench.scratch import Scratch, scratch
from rota.measure.servers import PostgresServer
from rota.store.operation import Statement
from rota.store.postgres import clearing, tidy
from rota.terminal.progress import Silent

pytestmark = pytest.mark.large

SHARE = 0.03

EXAMINED = {
    "claim", "claim_keyed", "claim_lanes", "claim_light", "claim_lock", "claim_probe", "cron_lock", "cron_mark", "cron_take",
    "heartbeat_trim", "keyed_lock", "key_trim", "look", "note", "prune_discarded", "rescue_jobs", "rescue_lock",
    "rescue_take", "session_forget", "session_leave", "session_open", "session_renew", "settle_complete",
    "settle_finish", "settle_wait", "settle_whole", "squeeze", "stage", "stage_next",
}  # fmt: skip
"""What a worker and its upkeep ask again and again, and more."""


@pytest.fixture
def where(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scratch]:
    """A server of its own: others' transactions would be holes; the rings need not rest."""
    monkeypatch.setattr(clearing, "REST", 0.0)
    with scratch(postgres_server.url, private=False) as found:
        yield found


def dearer(where: Scratch) -> set[str]:
    """The statements that read more after a small day; time says little on a loaded machine."""
    result = day.day(where, share=SHARE, progress=Silent())
    statements: Mapping[str, Any] = result.figures["statements"]  # type: ignore[assignment]
    assert statements.keys() >= EXAMINED
    return {
        name
        for name, found in statements.items()
        if found["blocks_after"] > day.MOST * found["blocks_before"] + day.FEW_BLOCKS
    }


def test_a_day_under_one_snapshot(where: Scratch) -> None:
    """No statement of a worker reads more after a day, whatever that left behind."""
    assert dearer(where) == set()


def test_a_statement_that_walks_the_day(where: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named."""
    text = tidy.HEARTBEAT_TRIM.text
    walking = text.replace("heartbeat.at >= (SELECT since FROM span)", "true")
    assert walking != text
    monkeypatch.setattr(tidy, "HEARTBEAT_TRIM", Statement("heartbeat_trim", walking))
    result = day.day(where, share=SHARE, progress=Silent())
    assert "heartbeat_trim" in str(result.figures["all"])
    statements: Mapping[str, Any] = result.figures["statements"]  # type: ignore[assignment]
    assert not statements["heartbeat_trim"]["within"]
    assert next(iter(statements)) in str(result.figures["all"])
