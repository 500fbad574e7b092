"""Processor time of processes with all that they have started."""

from collections.abc import Iterable

import psutil


def seconds(pids: Iterable[int]) -> float:
    """User and system time of these processes and of their descendants, those that ended included."""
    return sum(map(_tree, pids))


def _tree(pid: int) -> float:
    used = 0.0
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.Error:
        return used
    for member in family:
        try:
            times = member.cpu_times()
        except psutil.Error:
            # It has ended since, and is in the time of its parent's ended children by the next
            # look.
            continue
        used += times.user + times.system + times.children_user + times.children_system
    return used
