"""Does a producer wait while another has an uncommitted enqueue in the same queue?"""

import time

from rota.measure.bench import tasks
from rota.measure.bench.figures import percentiles, ratio
from rota.measure.bench.holder import held
from rota.measure.reports.report import Figures
from rota.terminal.progress import Progress

BLOCK = 50
"""Enqueues with and without the open producer take turns in such blocks."""


def waiting(url: str, *, blocks: int = 12, progress: Progress) -> dict[str, Figures]:
    """Time enqueues one by one; in every other block another producer has not committed."""
    app = tasks.open_app(url)
    for _ in range(BLOCK):
        tasks.stamp.enqueue(0.0)
    times: dict[bool, list[float]] = {True: [], False: []}
    progress.begin("enqueue beside an open producer", 2 * blocks * BLOCK)
    for block in range(2 * blocks):
        beside = block % 2 == 1
        if beside:
            with held(url) as connection:
                tasks.stamp.using(conn=connection).enqueue(0.0)
                times[beside] += _block()
                connection.commit()
        else:
            times[beside] += _block()
        progress.at((block + 1) * BLOCK)
    app.close()
    with_open, alone = percentiles(times[True]), percentiles(times[False])
    return {
        "another_producer": {
            "beside_open": {"enqueues": len(times[True]), **with_open},
            "alone": {"enqueues": len(times[False]), **alone},
        },
        "beside_open_to_alone": {
            "p50": ratio(with_open["p50_ms"], alone["p50_ms"]),
            "p99": ratio(with_open["p99_ms"], alone["p99_ms"]),
        },
    }


def _block() -> list[float]:
    times = []
    for _ in range(BLOCK):
        began = time.perf_counter()
        tasks.stamp.enqueue(0.0)
        times.append(time.perf_counter() - began)
    return times
