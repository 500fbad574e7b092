"""Import a file with a mistake, and the same one without.

python -m importer
python -m importer prices.csv          # your own: lines of an article and a price, into importer.db
"""

import logging
import sys
import tempfile
from pathlib import Path

from rota import FlowHandle, NodeState, Worker, WorkerConfig

from .jobs import rota, start


def follow(flow: FlowHandle) -> None:
    """Run all that there is to run, and say what became of each node."""
    Worker(rota, WorkerConfig(drain=True)).run()
    nodes = flow.nodes()
    print("  " + ", ".join(f"{node.name} {node.state}" for node in nodes))
    if nodes[0].state is NodeState.FAILED:
        for job in rota.jobs.list(state="discarded"):
            print(f"  {job.errors[-1].message}")


def main(folder: Path) -> None:
    """Import two files."""
    good = [f"article {number},{number}.50\n" for number in range(1, 13)]
    bad = [*good[:6], "article 7,twelve\n", *good[7:]]
    for name, lines in (("monday.csv", bad), ("tuesday.csv", good)):
        (folder / name).write_text("".join(lines))
        follow(start(folder / name, part=4))


if __name__ == "__main__":
    logging.basicConfig(level=logging.CRITICAL)  # what goes wrong is told above
    if len(sys.argv) > 1:
        with rota:
            rota.use("sqlite:///importer.db")
            follow(start(Path(sys.argv[1]).resolve()))
    else:
        with tempfile.TemporaryDirectory() as place, rota:
            rota.use(f"sqlite:///{place}/rota.db")
            main(Path(place))
