"""Chromium driven by selenium: one process; pages dark, narrow or without scripts, as tests ask.

All of that goes by the browser's own protocol, so nothing is started anew for it. What a page does
against its policy, and every error in the browser's log, is kept until a test asks.
"""

import base64
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver import ActionChains, Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.wait import WebDriverWait

T = TypeVar("T")

WIDE, NARROW = (1200, 800), (360, 740)
LONG = 20.0
"""Seconds after which a test has waited in vain."""

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-features=SpareRendererForSitePerProcess,BackForwardCache", "--disable-extensions",
    "--renderer-process-limit=1", "--process-per-site", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--hide-scrollbars",
)  # fmt: skip

WATCH = """
document.addEventListener("securitypolicyviolation", (event) => {
  const known = JSON.parse(sessionStorage.getItem("violations") ?? "[]");
  known.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
  sessionStorage.setItem("violations", JSON.stringify(known));
});
// What a stream has told, before the page's own scripts get it.
window.EventSource = class extends EventSource {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", (event) => { window.lastNews = event.data; });
  }
};
// Requests that the page kept itself from sending.
window.heldBack = 0;
document.addEventListener("htmx:beforeRequest", (event) => { window.heldBack += event.defaultPrevented; });
"""
"""Runs in each page before its own scripts; the policy does not apply to it."""


VIOLATIONS = """
try {
  const known = sessionStorage.getItem("violations");
  sessionStorage.removeItem("violations");
  return JSON.parse(known ?? "[]");
} catch { return []; }
"""
"""Of the pages of this origin; an empty page has none, and no storage."""

TOO_WIDE = """
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth <= width) { return []; }
const found = [...document.querySelectorAll("body *")].filter(
  (element) => element.getBoundingClientRect().right > width + 0.5 && !element.closest(".scroll"));
return ["the page", ...found.map((element) => element.outerHTML.slice(0, 200))];
"""

CUT_OFF = """
const width = document.documentElement.clientWidth;
return [...document.querySelectorAll("main button, main input, main select")]
  .filter((element) => element.checkVisibility() && element.getBoundingClientRect().right > width + 0.5)
  .map((element) => element.outerHTML.slice(0, 200));
"""
"""What can be moved sideways may hide words, and never what is to be pressed."""


class Chromium:
    """A browser with one window."""

    def __init__(self, driver: Chrome, folder: tempfile.TemporaryDirectory[str]) -> None:
        self._driver = driver
        self._folder = folder
        self._kept: list[str] = []

    @classmethod
    def start(cls, program: str, driver_program: str) -> Self:
        """Start one with a fresh profile, from its program and its driver's."""
        folder = tempfile.TemporaryDirectory(prefix="rota-browser-", ignore_cleanup_errors=True)
        options = ChromeOptions()
        options.binary_location = program
        for option in (*OPTIONS, f"--user-data-dir={folder.name}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = Chrome(options=options, service=Service(driver_program))
        found = cls(driver, folder)
        found.tell("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        return found

    def stop(self) -> None:
        """End the process."""
        self._driver.quit()
        self._folder.cleanup()

    # What pages meet ------------------------------------------------------------------------

    def appear(
        self, *, dark: bool = False, size: tuple[int, int] = WIDE, reduced: bool = False
    ) -> None:
        """Colours that the system prefers, the window's size, and whether less motion is wanted."""
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"},
        ]
        self.tell("Emulation.setEmulatedMedia", features=features)
        width, height = size
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=size == NARROW,
        )  # fmt: skip

    def scripts(self, *, on: bool) -> None:
        """Whether the scripts of pages run."""
        self.tell("Emulation.setScriptExecutionDisabled", value=not on)

    def hide(self, *, hidden: bool) -> None:
        """Hide the window, or show it again."""
        if hidden:
            self._driver.minimize_window()
        else:
            self._driver.set_window_rect(0, 0, *WIDE)

    # Pages ----------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where it is."""
        return self._driver.current_url

    @property
    def title(self) -> str:
        """The title of its page."""
        return self._driver.title

    def open(self, url: str) -> None:
        """Go to a page, and wait until it is there."""
        self._driver.get(url)

    def leave(self) -> None:
        """Leave the page, before its server ends; what there is to complain about is kept."""
        self._kept += self.run(VIOLATIONS)
        self.open("about:blank")

    def find(self, selector: str) -> WebElement:
        """The first element."""
        return self._driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> Sequence[WebElement]:
        """All elements."""
        return self._driver.find_elements(By.CSS_SELECTOR, selector)

    def button(self, words: str) -> WebElement:
        """The button or link with just these words."""
        path = f"//*[self::button or self::a][normalize-space()='{words}']"
        return self._driver.find_element(By.XPATH, path)

    def text(self, selector: str = "body") -> str:
        """What is seen of an element."""
        return self.find(selector).text

    def follow(self, element: WebElement) -> None:
        """Click what leads to another page, and wait for that page."""
        before = self.find("html")
        element.click()
        self.until(lambda: staleness_of(before)(self._driver), "another page")

    def press(self, *keys: str, held: str = "") -> None:
        """Press keys, one after the other, wherever the focus is, while another one is held."""
        actions = ActionChains(self._driver, duration=0)
        if held:
            actions.key_down(held)
        actions.send_keys(*keys)
        if held:
            actions.key_up(held)
        actions.perform()

    def run(self, script: str, *given: object) -> Any:
        """What a function's body gives."""
        return self._driver.execute_script(script, *given)

    def run_until_told(self, script: str, *given: object) -> Any:
        """What a function's body tells its last argument, which is a function."""
        return self._driver.execute_async_script(script, *given)

    def until(self, look: Callable[[], T], what: str) -> T:
        """Look again until the answer counts as true; between pages there may be nothing to see."""
        wait = WebDriverWait(self._driver, LONG, 0.05, ignored_exceptions=[WebDriverException])
        return wait.until(lambda _: look(), f"waited for {what}")

    def until_seen(self, words: str, selector: str = "body") -> None:
        """Wait for words in an element."""
        self.until(lambda: words in self.text(selector), repr(words))

    def too_wide(self) -> list[str]:
        """What does not fit into the window's width, so that the whole page could be moved sideways.

        Charts follow a window of another size some frames later.
        """
        with suppress(TimeoutException):
            self.until(lambda: not self.run(TOO_WIDE), "the page to fit")
        found: list[str] = self.run(TOO_WIDE)
        return found

    def cut_off(self) -> list[str]:
        """Buttons and fields that are not wholly within the window's width."""
        found: list[str] = self.run(CUT_OFF)
        return found

    def picture(self, path: Path) -> None:
        """Write a picture of the whole page, as WebP."""
        size = self.tell("Page.getLayoutMetrics")["cssContentSize"]
        clip = {**size, "scale": 1}
        found = self.tell(
            "Page.captureScreenshot",
            format="webp",
            quality=50,
            clip=clip,
            captureBeyondViewport=True,
        )
        path.write_bytes(base64.b64decode(found["data"]))

    def complaints(self) -> list[str]:
        """What went against a policy and what the browser's log has, since this was asked last."""
        log = [
            entry["message"]
            for entry in self._driver.get_log("browser")  # type: ignore[no-untyped-call]
            if entry["level"] in {"WARNING", "SEVERE"}
        ]
        kept, self._kept = self._kept, []
        return [*kept, *self.run(VIOLATIONS), *log]

    def tell(self, command: str, **given: object) -> Any:
        """Ask the browser for something in its own protocol."""
        return self._driver.execute_cdp_cmd(command, given)
