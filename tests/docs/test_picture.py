"""The pictures show what there is."""

import re
from xml.etree import ElementTree as ET

import pytest

from rota.model.states import Move, State
from tests.docs import long_transaction, recording
from tests.docs.pages import PAGES
from tests.docs.picture import PICTURE, draw, words
from website.pictures import states
from website.pictures.all import FOLDER, PICTURES


@pytest.mark.asyncio
async def test_the_picture_of_top() -> None:
    """The picture agrees with today's screen; else draw it anew: python -m tests.docs.picture."""
    assert words(PICTURE.read_text(encoding="utf-8")) == words(await draw())


def test_pictures_are_there() -> None:
    """Each picture that a page shows is in the repository, and has a text in its place."""
    shown = 0
    for page in PAGES:
        for said, target in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
            assert said, f"{page.name}: {target}"
            shown += 1
    assert shown


def test_the_picture_of_a_long_transaction() -> None:
    """It shows the lab's stored run; else draw it anew: python -m tests.docs.long_transaction."""
    assert long_transaction.PICTURE.read_text(encoding="utf-8") == long_transaction.drawn()


def test_the_recording() -> None:
    """It shows the stored transcript, and each line stands still where motion is not wanted."""
    picture = recording.PICTURE.read_text(encoding="utf-8")
    assert picture == recording.drawn(recording.kept())
    assert ET.fromstring(picture).tag.endswith("svg")  # noqa: S314 - drawn here
    for _, line in recording.kept():
        assert line.split(maxsplit=1)[0] in picture


@pytest.mark.parametrize("name", PICTURES)
def test_the_drawings(name: str) -> None:
    """Each drawing is what its code draws today; else draw it anew: python -m website.pictures."""
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == PICTURES[name]()


def test_each_drawing_is_shown() -> None:
    """Each drawing is on a page."""
    shown = "\n".join(page.read_text("utf-8") for page in PAGES)
    assert [name for name in PICTURES if f"pictures/{name}.svg)" not in shown] == []


def test_every_move_is_drawn() -> None:
    """The drawing of the states has every move and state, and fails where a way is missing."""
    texts = set(words(PICTURES["states"]()))
    assert set(State) <= texts
    told = {move for text in texts for move in text.split(", ")}
    assert set(Move) <= told
    way = (State.RUNNING, State.DISCARDED)
    points = states.WAYS.pop(way)
    try:
        with pytest.raises(KeyError):
            states.drawn()
    finally:
        states.WAYS[way] = points
