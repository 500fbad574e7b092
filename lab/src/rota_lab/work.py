"""What workers do with jobs."""

import hashlib


def nothing(text: str) -> None:
    """Nothing."""
    del text


def md5(text: str) -> None:
    """What article 4 does: the MD5 of the text, which nobody wants."""
    hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
