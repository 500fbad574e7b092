"""Strangers' pictures are decoded in child processes of the worker.

So they use all cores; and whatever a picture does to the decoder (a crash, an endless loop, a bomb
of pixels), the worker goes on, and so do the jobs beside it.
"""

from pathlib import Path

from PIL import Image, UnidentifiedImageError

from rota import Rota

rota = Rota()


@rota.task(
    executor="process",
    queue="pictures",
    timeout=60,  # then the child is killed
    # Another attempt would not help:
    discard_on=(UnidentifiedImageError, Image.DecompressionBombError),
    store_result=True,
)
def shrink(source: str, target: str, side: int = 128) -> tuple[int, int]:
    """Write a thumbnail of a picture, which fits into a square, as JPEG; its width and height."""
    with Image.open(source) as picture:
        picture.thumbnail((side, side))
        # Under another name first: a second run, or a reader, never meets half of a file.
        unfinished = Path(target).with_suffix(".part")
        picture.convert("RGB").save(unfinished, "JPEG")
        unfinished.replace(target)
        return picture.size
