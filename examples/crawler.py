"""A crawler over subjects that come round: each site is one job, whose rounds are counted.

The idea is FetchQ's: a subject has one row, which says when it is due next, how often it was done
and when last. Enqueueing all sites again adds only the new ones.

    python examples/crawler.py                           # a few sites, three quick rounds
    python examples/crawler.py 100000 3600               # 100,000 sites, every hour, until Ctrl-C
"""

import random
import sys
import tempfile
import time
from contextlib import nullcontext

from rota import Again, Rota, WorkerConfig
from rota.store.url import VARIABLE
from rota.worker import Worker

ROUNDS = 3
"""Rounds of a site in the quick run, which has no hour to wait."""

rota = Rota()
every = 0.1
"""Seconds from one round of a site to the next."""
done: dict[str, int] = {}


@rota.task(unique="site:{site}", queue="crawl", max_attempts=3)
async def crawl(site: str) -> Again | None:
    """Look at a site; a real crawler would fetch it here."""
    done[site] = done.get(site, 0) + 1
    if every < 1 and done[site] == ROUNDS:
        return None  # this subject is at its end
    # Not all at the same moment: spread over a tenth of the time.
    return Again(after=every * random.uniform(0.95, 1.05))  # noqa: S311 - no secret


def main(sites: int, seconds: float) -> None:
    """Enqueue all sites, twice, and crawl them."""
    global every  # noqa: PLW0603 - a setting of the command line
    every = seconds
    names = [(f"site{number}.example",) for number in range(sites)]
    began = time.monotonic()
    print(f"new: {len(crawl.enqueue_many(names).created)} sites")
    print(f"again: {len(crawl.enqueue_many(names).skipped)} sites are there already")
    print(f"enqueued in {time.monotonic() - began:.2f} s", file=sys.stderr)
    Worker(rota, WorkerConfig(queues=("crawl",), drain=seconds < 1)).run()
    for site in rota.jobs.list(subject="site:site0.example"):
        print(f"{site.unique_key}: {site.state} after {site.iteration + 1} rounds")


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    pause = float(sys.argv[2]) if len(sys.argv) > 2 else every  # noqa: PLR2004 - the second argument
    import os

    own = VARIABLE not in os.environ
    with tempfile.TemporaryDirectory() if own else nullcontext("") as folder, rota:
        if own:
            rota.use(f"sqlite:///{folder}/rota.db")
        main(wanted, pause)
