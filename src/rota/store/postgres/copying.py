"""Rows for a COPY into the log, in text format, made block by block while the server stores those before."""

from collections.abc import Iterable, Iterator, Sequence

from rota.model.job import JobId

COPY_FROM = 200
"""From how many jobs on COPY is faster than an INSERT."""

BLOCK = 500
"""Jobs of a block."""

_SPECIAL = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def blocks(jobs: Sequence[JobId], middle: str, args: Sequence[str]) -> Iterator[str]:
    """Rows of the id of each job, what all have, and its args."""
    for start in range(0, len(args), BLOCK):
        part = slice(start, start + BLOCK)
        rows = zip(jobs[part], args[part], strict=True)
        yield "".join([f"{job}{middle}{_json(text)}\n" for job, text in rows])


def keyed_blocks(rows: Sequence[tuple[int, int, str, str]], middle: str) -> Iterator[str]:
    """Rows of the id of each job, its lane, what all have, its unique key, and its args."""
    for start in range(0, len(rows), BLOCK):
        yield "".join(
            [
                f"{job}\t{lane}{middle}{_text(key)}\t{_json(args)}\n"
                for job, lane, key, args in rows[start : start + BLOCK]
            ]
        )


def middle(values: Iterable[object]) -> str:
    """What stands between the columns that differ from row to row."""
    texts = [r"\N" if value is None else _text(str(value)) for value in values]
    return "\t".join(["", *texts, ""])


def _text(text: str) -> str:
    return text if text.isprintable() and "\\" not in text else text.translate(_SPECIAL)


def _json(text: str) -> str:
    # It holds no tab and no newline, so the backslash is the only character that COPY reads differently.
    return text.replace("\\", "\\\\") if "\\" in text else text
