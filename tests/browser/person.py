"""What a person does on the pages of jobs, in a few words, with scripts and without."""

from urllib.parse import urlencode

from tests.browser.chromium import Chromium


class Person:
    """Someone at a browser.

    Args:
        address: The dashboard's, without the last slash.
    """

    def __init__(self, browser: Chromium, address: str) -> None:
        self.browser = browser
        self.address = address

    def goes_to(self, path: str, **asked: str) -> None:
        """Open a page."""
        self.browser.open(f"{self.address}{path}{'?' if asked else ''}{urlencode(asked)}")

    def fills_in(self, **fields: str) -> None:
        """Fill in the fields of the form of filters, and show what there is."""
        for name, text in fields.items():
            field = self.browser.find(f".filters [name={name}]")
            if field.tag_name == "input":
                field.clear()
            field.send_keys(text)
        self.browser.follow(self.browser.find(".filters button"))

    def sees(self) -> list[str]:
        """The ids of the jobs in the table."""
        return [each.text for each in self.browser.all("main td.id, main th.id")]

    def follows(self, words: str) -> None:
        """Click the link or button with just these words."""
        self.browser.follow(self.browser.button(words))

    def is_sure(self) -> None:
        """Say yes to the question that is asked."""
        self.browser.follow(self.browser.find("main form.actions button"))

    def is_told(self) -> str:
        """What the page says was done."""
        return self.browser.text(".told")
