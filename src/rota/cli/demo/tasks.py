"""The demo's app.

Its workers find the database in the environment: URLs hold passwords, and all users of a machine
can read command lines.
"""

import hashlib
import os
from pathlib import Path

from rota import Backoff, Rota

URL_VARIABLE = "ROTA_DEMO_URL"

rota = Rota(os.environ.get(URL_VARIABLE) or "sqlite:///rota-demo.db")


@rota.task(name="demo.checksum", store_result=True, retry=Backoff(first=0.2, attempts=3))
def checksum(path: str) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
