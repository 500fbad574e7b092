"""The pictures show what there is."""

import re

import pytest

from tests.docs.pages import PAGES
from tests.docs.picture import PICTURE, draw, words


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
