"""Processor time of processes."""

import subprocess
import sys

from benchmarks.peers import processor

BURN = """
import subprocess, sys, time
child = "import time\\nwhile time.process_time() < 0.2: pass"
subprocess.run([sys.executable, "-c", child], check=True)
print("done", flush=True)
sys.stdin.read()
"""


def test_children_that_ended_count() -> None:
    """What a child has used is in its parent's time, also when it is gone."""
    process = subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        assert processor.seconds([process.pid]) >= 0.2
    assert processor.seconds([process.pid]) == 0
