"""Every page: in light and dark colours and on a narrow screen, for eyes and for screen readers."""

import hashlib
import tomllib

import pytest

from rota.dashboard.pages import ROUTES
from rota.dashboard.routes import find
from tests.browser.axe import VENDOR, barriers
from tests.browser.chromium import NARROW, Chromium
from tests.browser.pictures import FOLDER, LOOKS
from tests.browser.shop import PAGES, Shop
from tests.fixtures.large import LARGE

SOME = {"overview", "job-failed", "cron"}
"""Pages that are looked at in each run; the others look alike."""

MOVING = """
return [...document.querySelectorAll("*")].filter((element) => {
  const style = getComputedStyle(element);
  return style.transitionDuration !== "0s" || style.animationName !== "none";
}).map((element) => element.outerHTML.slice(0, 120));
"""

LANDMARKS = """
const once = ["h1", "body > header", "body > header > nav[aria-label]", "body > main", "body > footer"];
return once.map((one) => document.querySelectorAll(one).length);
"""


def test_no_page_is_forgotten(known: tuple[Shop, str]) -> None:
    """Each route that shows something is among the pages that are looked at."""
    shop, _ = known
    looked_at = set()
    for page in PAGES:
        found = find(ROUTES, "GET", shop.path(page).partition("?")[0])
        assert isinstance(found, tuple), page
        looked_at.add(found[0].path)
    shown = {route.path for route in ROUTES if route.method == "GET"}
    assert looked_at == shown - {"/static/{name}"}


@pytest.mark.parametrize(
    "page",
    [page if page in SOME else pytest.param(page, marks=pytest.mark.large) for page in PAGES],
)
def test_a_page(browser: Chromium, known: tuple[Shop, str], page: str) -> None:
    """No grave barrier for anyone, light or dark; a narrow screen is wide enough.

    The policy is kept.
    """
    shop, address = known
    browser.appear(reduced=True)
    browser.open(address + shop.path(page))
    assert browser.title.endswith("· Rota")
    assert browser.run(LANDMARKS) == [1] * 5
    assert barriers(browser) == []
    assert browser.run(MOVING) == []
    # Without motion colours change at once.
    browser.appear(dark=True, reduced=True)
    assert barriers(browser, "color-contrast") == []
    browser.appear(size=NARROW)
    assert browser.too_wide() == []
    assert browser.cut_off() == []
    gone = "404" if page == "refused" else "nothing else"
    assert [line for line in browser.complaints() if gone not in line] == []


def test_every_page_without_scripts(browser: Chromium, known: tuple[Shop, str]) -> None:
    """All is there, and nothing is offered that would need them."""
    shop, address = known
    browser.scripts(on=False)
    for page in PAGES if LARGE else SOME:
        browser.open(address + shop.path(page))
        assert browser.find("main").text
        offered = [one.text for one in browser.all("button") if one.is_displayed()]
        assert not {"Keys", "Theme", "Close"} & set(offered)
    assert all("404" in line for line in browser.complaints())


def test_questions(browser: Chromium, known: tuple[Shop, str]) -> None:
    """Questions before an action: on one job, on selected jobs, and on all that match."""
    shop, address = known
    for page, button in (
        ("job-waiting", "Cancel …"),
        ("jobs", "Delete …"),
        ("discarded", "Retry …"),
    ):
        browser.appear(reduced=True)
        browser.open(address + shop.path(page))
        browser.follow(browser.button(button))
        assert browser.title.endswith("? · Rota")
        assert browser.run(LANDMARKS) == [1] * 5
        assert barriers(browser) == []
        browser.appear(dark=True, reduced=True, size=NARROW)
        assert barriers(browser, "color-contrast") == []
        assert browser.too_wide() == []
        assert browser.cut_off() == []


def test_the_help(browser: Chromium, known: tuple[Shop, str]) -> None:
    """The dialog with the keys, too."""
    _, address = known
    browser.appear(reduced=True)
    browser.open(f"{address}/")
    browser.button("Keys").click()
    assert browser.find("dialog").is_displayed()
    assert barriers(browser) == []
    browser.appear(dark=True, size=NARROW, reduced=True)
    assert barriers(browser, "color-contrast") == []


def test_the_guard_itself(browser: Chromium, known: tuple[Shop, str]) -> None:
    """Inline scripts and styles are refused and counted; what cannot be read is found."""
    _, address = known
    browser.open(f"{address}/doctor")
    browser.run(
        "const script = document.createElement('script'); script.textContent = 'window.obeyed = true';"
        "document.body.append(script);"
        "document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">red</p>');"
    )
    assert browser.run("return window.obeyed") is None
    counted = browser.complaints()
    assert [line.split()[0] for line in counted[:2]] == ["script-src-elem", "style-src-attr"]
    browser.run(
        "document.querySelector('main').style.color = document.body.style.background = '#999'"
    )
    assert any("color-contrast" in line for line in barriers(browser, "color-contrast"))


def test_pictures_of_all_pages() -> None:
    """The folder of pictures has each page in each look, and nothing that is not there any more."""
    kept = {file.name for file in FOLDER.iterdir()}
    assert kept == {f"{page}-{look}.webp" for page in PAGES for look in LOOKS}


def test_what_is_vendored() -> None:
    """What comes from elsewhere is what was published."""
    listed = tomllib.loads((VENDOR / "VENDORED.toml").read_text())
    assert set(listed) == {file.name for file in VENDOR.iterdir()} - {"VENDORED.toml"}
    for name, said in listed.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == said["sha256"]
        assert said["licence"]
        assert said["version"]
