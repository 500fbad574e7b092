"""Crawl a small site of this process's own for a moment, or another one until Ctrl-C.

python -m crawler
python -m crawler www.example.org 3600      # in crawler.db; a page that changes comes round every hour
"""

import json
import sys
import tempfile
from collections import Counter

from rota import Worker
from rota.events import JobComesRound

from .jobs import TABLE, rota, visit
from .site import served

ENOUGH = 8
"""Visits to the news after which the small site has been crawled."""


def start(host: str, pause: float) -> None:
    """Enqueue a host's first page, if it is not there already."""
    with rota.transaction() as tx:
        tx.execute(TABLE)
        visit.using(conn=tx).enqueue(host, "/", pause)


def main() -> None:
    """Crawl the small site, and say what came of it."""
    with tempfile.TemporaryDirectory() as folder, served() as host, rota:
        rota.use(f"sqlite:///{folder}/crawler.db")
        start(host, pause=0.1)
        worker = Worker(rota)
        visits: Counter[str] = Counter()

        @rota.on(JobComesRound)
        def count(event: JobComesRound) -> None:
            visits[json.loads(event.job.args)["path"]] += 1
            if visits["/news"] == ENOUGH:
                worker.stop()

        worker.run()
        print(f"{len(visits)} pages, found from one; {rota.jobs.count()} jobs")
        print(f"{visits['/news']} visits to the news")
        print(f"{visits['/page/9']} visits to a page that stays as it is")
        print(f"{visits['/gone']} visit to a page that has gone")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        rota.use("sqlite:///crawler.db")
        start(sys.argv[1], float(sys.argv[2]))
        Worker(rota).run()
