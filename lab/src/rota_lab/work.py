"""The work that workers do with a job."""

import hashlib


def nothing(text: str) -> None:
    """Nothing."""
    del text


def md5(text: str) -> None:
    """Article 4's work: compute the MD5 of the text, and drop it."""
    hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
