"""Pictures of all pages, light, dark and on a narrow screen: `python -m tests.browser.pictures`.

They are of a shop that is made up here, and are drawn anew when pages have changed: look at them
then.
"""

import logging
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

from rota.measure.servers.binaries import find_program
from rota.store.migrate import migrate
from rota.store.opening import open_store
from tests.browser.chromium import NARROW, WIDE, Chromium
from tests.browser.serving import under_asgi
from tests.browser.shop import PAGES, shop
from tests.docs.pages import ROOT
from tests.fixtures.browser import BROWSERS, DRIVERS

FOLDER = ROOT / "docs" / "pictures" / "dashboard"

LOOKS = {"light": (False, WIDE), "dark": (True, WIDE), "narrow": (False, NARROW)}


def draw(folder: Path) -> None:
    """All pictures, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        url = f"sqlite:///{stack.enter_context(TemporaryDirectory())}/rota.db"
        with closing(open_store(url)) as store, closing(store.connect()) as connection:
            migrate(store, connection)
        made = stack.enter_context(shop(url))
        address = stack.enter_context(under_asgi(made.app))
        browser = Chromium.start(find_program(*BROWSERS), find_program(*DRIVERS))
        stack.callback(browser.stop)
        for look, (dark, size) in LOOKS.items():
            browser.appear(dark=dark, size=size, reduced=True)
            for page in PAGES:
                browser.open(address + made.path(page))
                browser.picture(folder / f"{page}-{look}.webp")


if __name__ == "__main__":
    logging.disable()
    draw(FOLDER)
