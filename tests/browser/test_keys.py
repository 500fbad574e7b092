"""The keyboard alone: keys that lead somewhere, the focus's way, and a job cancelled with it."""

import pytest
from selenium.webdriver.common.keys import Keys

from rota import Rota, State
from tests.browser.chromium import Chromium
from tests.browser.conftest import Serve
from tests.browser.shop import Shop

FOCUSED = """
const element = document.activeElement, style = getComputedStyle(element);
return [element.textContent.trim() || element.getAttribute("aria-label") || element.name, style.outlineStyle, style.outlineWidth];
"""


def focused(browser: Chromium) -> str:
    """What has the focus, which is visible."""
    name, style, width = browser.run(FOCUSED)
    assert style == "solid", name
    assert width == "2px", name
    found: str = name
    return found


def test_keys_that_lead_somewhere(browser: Chromium, known: tuple[Shop, str]) -> None:
    """Each key leads to its page, and is heard there, too."""
    _, address = known
    browser.open(f"{address}/")
    for key, title in (("j", "Jobs"), ("q", "Queues"), ("w", "Workers"), ("c", "Cron")):
        browser.press(key)
        browser.until(lambda title=title: browser.title == f"{title} · Rota", title)  # type: ignore[misc]
        assert browser.find(f"nav [data-key={key}]").get_attribute("aria-keyshortcuts") == key
    browser.run("window.before = true")
    browser.press("r")
    browser.until(lambda: browser.run("return window.before") is None, "the page anew")


def test_keys_and_typing(browser: Chromium, known: tuple[Shop, str]) -> None:
    """A slash goes to the first filter; keys are letters there, and with Ctrl they are the browser's."""
    _, address = known
    browser.open(f"{address}/queues")
    browser.press("/")
    browser.press("j", "?", "q")
    assert browser.find("input[name=name]").get_attribute("value") == "j?q"
    browser.press("/")
    assert browser.run("return document.activeElement.value") == "j?q/"
    browser.run("document.activeElement.blur()")
    browser.press("j", held=Keys.CONTROL)
    assert browser.title == "Queues · Rota"
    assert not browser.find("dialog").is_displayed()


def test_the_help_and_its_switch(browser: Chromium, known: tuple[Shop, str]) -> None:
    """A question mark shows the keys; Escape closes them and restores the focus.

    Keys can be switched off for good.
    """
    _, address = known
    browser.open(f"{address}/doctor")
    browser.run("document.querySelector('summary').focus()")
    browser.press("?")
    assert browser.find("dialog").is_displayed()
    assert "Reload this page" in browser.text("dialog")
    browser.press("j", Keys.ESCAPE)
    assert not browser.find("dialog").is_displayed()
    assert browser.title == "Doctor · Rota"
    assert browser.run("return document.activeElement.localName") == "summary"
    browser.button("Keys").click()
    browser.find("#keys-wanted").click()
    browser.press(Keys.ESCAPE)
    browser.open(f"{address}/queues")
    browser.press("?", "j", "/")
    assert browser.title == "Queues · Rota"
    assert not browser.find("dialog").is_displayed()
    assert browser.run("return document.activeElement.localName") == "body"
    assert browser.all("[aria-keyshortcuts]") == []
    browser.button("Keys").click()
    browser.find("#keys-wanted").click()
    browser.press(Keys.ESCAPE, "j")
    browser.until(lambda: browser.title == "Jobs · Rota", "a key that is heard again")


def test_the_way_of_the_focus(browser: Chromium, known: tuple[Shop, str]) -> None:
    """It is always visible, in the order of the page; its first step skips the names of the pages."""
    shop, address = known
    browser.open(address + shop.path("job-waiting"))
    browser.press(Keys.TAB)
    assert focused(browser) == "Skip to content"
    browser.press(Keys.TAB)
    way = []
    while (name := focused(browser)) != "Keys":
        way.append(name)
        browser.press(Keys.TAB)
    assert way[:4] == ["Rota", "Overview", "Queues", "Jobs"]
    assert way[-6:-1] == ["reports", "Cancel …", "Delete …", str(shop.running), "2026-11-05"]
    browser.run("document.activeElement.blur(); document.querySelector('.skip').focus()")
    browser.press(Keys.ENTER, Keys.TAB)
    assert focused(browser) == "Jobs"
    assert browser.run("return document.activeElement.closest('main') !== null")


def test_a_job_is_cancelled(browser: Chromium, app: Rota, serve: Serve) -> None:
    """From its page by the question to the answer, with Tab and Enter."""
    job = app.task(name="send")(lambda: None).enqueue()
    with serve(app) as address:
        browser.open(f"{address}/jobs/{job.id}")
        to(browser, "Cancel …")
        browser.press(Keys.ENTER)
        browser.until(lambda: browser.title.startswith("Cancel"), "the question")
        to(browser, "Yes, cancel")
        browser.press(Keys.ENTER)
        browser.until_seen("The job was cancelled", "[role=status]")
    assert job.status is State.CANCELLED


def to(browser: Chromium, name: str) -> None:
    """Press Tab until that has the focus."""
    for _ in range(40):
        browser.press(Keys.TAB)
        if focused(browser) == name:
            return
    pytest.fail(f"Tab does not come to {name}")
