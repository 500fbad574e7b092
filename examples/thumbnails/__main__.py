"""Shrink a few painted pictures, or your own.

python -m thumbnails
python -m thumbnails ~/Pictures          # into ~/Pictures/thumbnails
"""

import logging
import sys
import tempfile
from pathlib import Path

from PIL import Image

from rota import State, Worker, WorkerConfig

from .jobs import rota, shrink


def paint(folder: Path) -> None:
    """Ten pictures, one that is none, and one that says it has more pixels than fit into memory."""
    for number in range(10):
        extent = (-2.0 + number / 20, -1.2, 1.0, 1.2)
        Image.effect_mandelbrot((600, 400), extent, 50).save(folder / f"picture{number}.png")
    (folder / "broken.png").write_text("this is not a picture")
    (folder / "bomb.ppm").write_bytes(b"P6 100000 100000 255\n")


def main(folder: Path) -> None:
    """Shrink all pictures of a folder, and say what became of each."""
    logging.basicConfig(level=logging.CRITICAL)  # what goes wrong is told below
    thumbnails = folder / "thumbnails"
    thumbnails.mkdir(exist_ok=True)
    pictures = sorted(file for file in folder.iterdir() if file.is_file())
    with tempfile.TemporaryDirectory() as place, rota:
        rota.use(f"sqlite:///{place}/rota.db")
        ids = shrink.enqueue_many(
            (str(file), str(thumbnails / f"{file.stem}.jpg")) for file in pictures
        )
        Worker(rota, WorkerConfig(queues=("pictures",), processes=2, drain=True)).run()
        for file, job in zip(pictures, map(rota.job, ids), strict=True):
            record = job.record()
            done = record.state is State.COMPLETED
            print(f"{file.name}: {record.result if done else record.errors[-1].message}")
    print(f"{len(list(thumbnails.iterdir()))} thumbnails")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).expanduser())
    else:
        with tempfile.TemporaryDirectory() as painted:
            paint(Path(painted))
            main(Path(painted))
