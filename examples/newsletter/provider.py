"""A mail provider's API for many mails at once, played by a class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Answer = Literal["sent", "busy", "no such mailbox"]


@dataclass(frozen=True)
class Mail:
    """A mail to one address."""

    to: str
    subject: str


class Provider:
    """Takes up to a hundred mails a call, and answers for each."""

    def __init__(self) -> None:
        self.calls = 0
        self.sent: list[str] = []

    async def send(self, mails: Sequence[Mail]) -> list[Answer]:
        """Send what can be sent; the provider's first call finds its last mailbox busy."""
        self.calls += 1
        answers: list[Answer] = []
        for number, mail in enumerate(mails, start=1):
            if mail.to.endswith("@moved.example"):
                answers.append("no such mailbox")
            elif self.calls == 1 and number == len(mails):
                answers.append("busy")
            else:
                answers.append("sent")
                self.sent.append(mail.to)
        return answers
