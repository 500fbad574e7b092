"""The drawings, by the names of their files."""

from collections.abc import Callable

from website.pictures import deployment, exactly_once, life, log, states, takeover
from website.repository import DOCS

FOLDER = DOCS / "pictures"

PICTURES: dict[str, Callable[[], str]] = {
    "deployment": deployment.drawn,
    "exactly-once": exactly_once.drawn,
    "life": life.drawn,
    "log": log.drawn,
    "states": states.drawn,
    "takeover": takeover.drawn,
}
