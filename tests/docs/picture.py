"""The picture of `rota top`: `python -m tests.docs.picture` draws it anew, from figures made up here.

It is textual's own screenshot, but for its fonts, which are the viewer's.
"""

import asyncio
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from rota.model.job import QueueRecord
from rota.model.states import State
from rota.store.health import HolderFacts, HorizonFacts, LaneFacts, SessionFacts
from rota.top.looker import Looker, News
from rota.top.screen import Top
from rota.top.snapshot import Snapshot
from tests.docs.pages import ROOT

PICTURE = ROOT / "docs" / "pictures" / "top.svg"

SIZE = (112, 18)
ADDRESS = "postgresql://rota@db1/shop"
CLOCK = re.compile(r"\d\d:\d\d:\d\d")

QUEUES = {
    # name: in/s, out/s, and what is in which state
    "default": (210, 214, {"available": 3_214, "running": 48, "scheduled": 120, "completed": 1_842_113}),
    "exports": (1, 1, {"available": 14, "running": 4, "completed": 20_412}),
    "mail": (95, 96, {"available": 12, "running": 31, "retryable": 27, "completed": 803_551,
                      "discarded": 3}),
    "newsletter": (0, 0, {"available": 250_000, "completed": 48_000}),
    "webhooks": (35, 12, {"available": 18_022, "running": 64, "retryable": 412,
                          "completed": 96_233, "discarded": 58}),
}  # fmt: skip
OLDEST = {"default": 14.0, "exports": 2.0, "mail": 0.1, "newsletter": 5_400.0, "webhooks": 612.0}
WORKERS = (
    SessionFacts(7, "web1:4242", ("default", "mail"), 15.0, 0.4, 61, 1.2, 93_800.0),
    SessionFacts(8, "web2:3911", ("default", "mail"), 15.0, 1.9, 18, 0.7, 93_795.0),
    SessionFacts(9, "batch1:880", ("exports", "webhooks"), 15.0, 2.2, 68, 41.0, 7_260.0),
    SessionFacts(4, "batch2:871", ("exports", "webhooks"), 15.0, 17.3, 0, None, 7_255.0),
)
HOLDER = HolderFacts("session", 20_717, "nightly", "etl", "idle in transaction", 1_452.0, 48_211)


class Made:
    """A looker that has looked for a minute, at a database that is not there."""

    every = 1.0

    def start(self, tell: Callable[[News], object]) -> None:
        """Tell everything at once."""
        random.seed(4711)
        appended, claimed = dict.fromkeys(QUEUES, 0), dict.fromkeys(QUEUES, 0)
        for second in range(61):
            queues = []
            for name, (came, went, counts) in QUEUES.items():
                wave = random.uniform(0.2, 1.0) * (second // 5 % 4 + 1) / 2 if second < 60 else 1.0
                appended[name] += came
                claimed[name] += round(went * wave)
                states = {State(state): jobs for state, jobs in counts.items()}
                paused = name == "newsletter"
                queues.append(QueueRecord(name, paused, states, appended[name], claimed[name]))
            tell(self._snapshot(second, queues))

    def _snapshot(self, second: int, queues: list[QueueRecord]) -> Snapshot:
        return Snapshot(
            at=datetime(2001, 9, 9, tzinfo=UTC),
            moment=float(second),
            took=0.0042,
            product="PostgreSQL 18.6",
            queues=tuple(queues),
            lanes=tuple(
                LaneFacts(name, 0, paused=False, oldest=age) for name, age in OLDEST.items()
            ),
            workers=WORKERS,
            horizon=HorizonFacts((HOLDER,)),
        )


async def draw() -> str:
    """The picture, as SVG."""
    looker: Looker = Made()  # type: ignore[assignment]  # all that the screen needs of one
    app = Top(looker, ADDRESS)
    async with app.run_test(size=SIZE) as pilot:
        drawn = ""
        for _ in range(50):
            await pilot.pause()
            drawn = app.export_screenshot(title="rota top")
            if "batch2" in drawn:
                break
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"font-family: (Fira Code|arial)[^;]*;", "font-family: monospace;", drawn)
    # Names that differ from one drawing to the next.
    return re.sub(r"terminal-\d+", "terminal", drawn)


def words(drawn: str) -> list[str]:
    """The words in a picture, but for the clock."""
    texts = ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 - our own
    found = ("".join(text.itertext()).replace("\xa0", " ").strip() for text in texts)
    return [CLOCK.sub("clock", text) for text in found if text]


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(asyncio.run(draw()), encoding="utf-8")
