"""Cron entries that are due at once, for the tests of apps."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rota import Rota
from rota.cron.entry import Missed
from rota.store.cron import Made

HOURLY = f"{(datetime.now(UTC).minute + 30) % 60} * * * *"
"""Due at a minute that is far from now: nothing comes due while a test looks."""


def made(app: Rota, hours: float = 1) -> list[Made]:
    """Store the declared entries as if nobody had looked for so many hours, and make all their jobs."""
    since = datetime.now(UTC) - timedelta(hours=hours)
    for entry in app.cron.declarations():
        assert app.database.run(
            app.database.store.cron.add(replace(entry, missed=Missed.ALL), since)
        )
    return app.database.run(app.database.store.cron.make()).made
