"""The recording of the README, made by `python -m tests.docs.recording`.

That runs `rota demo --kill`, keeps what it says and when, and draws it.

A picture that moves by itself, without a player or a script; where motion is not wanted all lines
are there at once.
"""

import html
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable

from tests.docs.pages import ROOT

PICTURE = ROOT / "docs" / "pictures" / "demo.svg"
TRANSCRIPT = ROOT / "docs" / "pictures" / "demo.txt"
"""The seconds since the begin of each line, a tab, and the line."""

COMMAND = "$ make demo ARGS=--kill"
COLUMNS = 100
LINE, LETTER, EDGE = 20, 8.43, 16
"""Pixels: of a line's height, a letter's width, and around it all."""

REST = 6.0
"""Seconds for which the last line is seen before it all begins again."""

COLOURS = (("$", "#7ee787"), ("Killed", "#ff7b72"), ("Rescued", "#79c0ff"), ("Good", "#7ee787"))
STYLE = """
  rect { fill: #0d1117; } text { fill: #e6edf3; font: 14px ui-monospace, monospace; white-space: pre; }
"""

Spoken = list[tuple[float, str]]
"""Lines, and after how many seconds each of them came."""


def record() -> Spoken:
    """What the demo says, as it says it."""
    spoken: Spoken = []
    command = [sys.executable, "-m", "rota", "demo", "--kill"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        began = time.monotonic()
        for line in demo.stdout or ():
            spoken.append((time.monotonic() - began, line.rstrip()))
    if demo.returncode:
        raise SystemExit(demo.returncode)
    # Where the standard library lies on this machine matters to nobody.
    return [(at, re.sub(r" in /\S+/(python3\S*):", r" in \1:", line)) for at, line in spoken]


def kept() -> Spoken:
    """The transcript."""
    lines = TRANSCRIPT.read_text(encoding="utf-8").splitlines()
    return [(float(at), line) for at, _, line in (line.partition("\t") for line in lines)]


def shape(lines: Iterable[str]) -> list[str]:
    """With which words lines begin, in the order in which these come first."""
    return list(
        dict.fromkeys(" ".join(re.findall(r"[A-Za-z-]+", line)[:2]) for line in lines if line)
    )


def drawn(spoken: Spoken) -> str:
    """The picture, as SVG that moves."""
    rows = [(0.0, COMMAND)]
    for at, line in spoken:
        rows += [(at + 1.0, part) for part in textwrap.wrap(line, COLUMNS, subsequent_indent="  ")]
    length = rows[-1][0] + REST
    width, height = round(COLUMNS * LETTER + 2 * EDGE), len(rows) * LINE + 2 * EDGE
    moves, texts = [], []
    for number, (at, line) in enumerate(rows):
        y = EDGE + LINE * number + 14
        fill = next(
            (f' style="fill:{colour}"' for word, colour in COLOURS if line.startswith(word)), ""
        )
        if at:
            part = 100 * at / length
            moves.append(
                f"@keyframes l{number} {{ 0% {{ opacity: 0; }} {part:.2f}% {{ opacity: 1; }} }}\n"
                f"@media (prefers-reduced-motion: no-preference) "
                f"{{ #l{number} {{ animation: l{number} {length:.1f}s step-end infinite; }} }}"
            )
        texts.append(f'<text id="l{number}" x="{EDGE}" y="{y}"{fill}>{html.escape(line)}</text>')
    said = html.escape(
        "A terminal: rota demo computes checksums, a worker is killed, and the others take its jobs over"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">\n'
        f"<title>{said}</title>\n<style>{STYLE}{chr(10).join(moves)}\n</style>\n"
        f'<rect width="{width}" height="{height}" rx="8"/>\n' + "\n".join(texts) + "\n</svg>\n"
    )


if __name__ == "__main__":
    transcript = record()
    TRANSCRIPT.write_text(
        "".join(f"{at:.2f}\t{line}\n" for at, line in transcript), encoding="utf-8"
    )
    PICTURE.write_text(drawn(kept()), encoding="utf-8")
