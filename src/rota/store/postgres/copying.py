"""Text-format rows for a COPY into the log, made in blocks while the server stores earlier ones."""

from collections.abc import Iterable, Iterator, Sequence

from rota.model.job import JobId

COPY_FROM = 200
"""From how many jobs on COPY is faster than an INSERT."""

BLOCK = 500
"""Jobs of a block."""

_SPECIAL = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def blocks(
    jobs: Sequence[JobId], middle: str, args: Sequence[str], first: int = 0
) -> Iterator[str]:
    """Rows of the id of each job, what all have, and its args, which begin with the `first`."""
    for part in _parts(jobs):
        texts = args[first + part.start : first + part.start + len(jobs[part])]
        rows = zip(jobs[part], _jsons(texts), strict=True)
        yield "".join([f"{job}{middle}{text}\n" for job, text in rows])


def key_blocks(
    jobs: Sequence[JobId], lanes: Sequence[int], middle: str, keys: Sequence[str]
) -> Iterator[str]:
    """Rows of the id of each job, its lane, what all have, and its unique key."""
    for part in _parts(jobs):
        rows = zip(jobs[part], lanes[part], _texts(keys[part]), strict=True)
        yield "".join([f"{job}\t{lane}{middle}{key}\n" for job, lane, key in rows])


def keyed_blocks(
    jobs: Sequence[JobId],
    lanes: Sequence[int | str],
    middle: str,
    keys: Sequence[str],
    args: Sequence[str],
) -> Iterator[str]:
    """Rows of the id of each job, its lane, what all have, its unique key, and its args."""
    for part in _parts(jobs):
        texts = _texts(keys[part]), _jsons(args[part])
        rows = zip(jobs[part], lanes[part], *texts, strict=True)
        yield "".join([f"{job}\t{lane}{middle}{key}\t{text}\n" for job, lane, key, text in rows])


def middle(values: Iterable[object]) -> str:
    """What stands between the columns that differ from row to row."""
    texts = [r"\N" if value is None else str(value).translate(_SPECIAL) for value in values]
    return "\t".join(["", *texts, ""])


def _parts(jobs: Sequence[JobId]) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, len(jobs), BLOCK))


def _texts(texts: Sequence[str]) -> Sequence[str]:
    # Mostly there is nothing to do, which is seen at once for all.
    together = "".join(texts)
    if any(character in together for character in "\\\t\n\r"):
        return [text.translate(_SPECIAL) for text in texts]
    return texts


def _jsons(texts: Sequence[str]) -> Sequence[str]:
    # They hold no tab and no newline, so the backslash is the only character that COPY reads
    # differently.
    if "\\" in "".join(texts):
        return [text.replace("\\", "\\\\") for text in texts]
    return texts
