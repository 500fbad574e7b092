"""What handlers write down."""

import os
from pathlib import Path

from benchmarks.peers import records
from benchmarks.peers.records import WARM_UP, Recorder


def test_records_of_several_processes(tmp_path: Path) -> None:
    """A process that was forked has a file of its own; warm-ups count, and are not read."""
    recorder = Recorder(tmp_path)
    recorder(WARM_UP, 0.0)
    recorder(7, 1.5)
    if (child := os.fork()) == 0:
        recorder(8, 2.5)
        os._exit(0)
    os.waitpid(child, 0)
    recorder(9, 3.5)
    assert records.count(tmp_path) == 4
    found = sorted(records.read(tmp_path))
    assert [(record.number, record.enqueued) for record in found] == [(7, 1.5), (8, 2.5), (9, 3.5)]
    assert found[0].started < found[1].started < found[2].started


def test_no_records(tmp_path: Path) -> None:
    """A folder without records, and a file that is just being made."""
    (tmp_path / "1.records").touch()
    assert (records.count(tmp_path), records.read(tmp_path)) == (0, [])
