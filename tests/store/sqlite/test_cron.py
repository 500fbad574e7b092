"""Cron on SQLite: unique jobs beside a producer that works without a transaction."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rota import Unique
from rota.cron.entry import CronEntry, Missed
from rota.cron.jobs import CronOptions, with_options
from rota.store.migrate import migrate
from rota.store.sqlite.store import SqliteStore


def test_a_key_without_a_job(tmp_path: Path) -> None:
    """Its producer may have died before it stored one: the entry is left until the key is free."""
    store = SqliteStore(tmp_path / "rota.db")
    with closing(store.connect()) as connection:
        migrate(store, connection)
        minute = (datetime.now(UTC).minute + 30) % 60
        since = datetime.now(UTC) - timedelta(hours=3)
        plain = CronEntry("plain", f"{minute} * * * *", "shop.send", missed=Missed.ALL)
        options = CronOptions(
            attempts_given=False, timeout_given=False, unique=Unique(key="x"), unique_key="key"
        )
        unique = with_options(CronEntry("unique", f"{minute} * * * *", "shop.send"), options)
        for entry in (unique, plain):
            assert connection.run(store.cron.add(entry, since))
        database = connection.database()
        database.execute(
            "INSERT INTO rota_unique (key, task, first_at, while_waiting)"
            " VALUES ('key', 'shop.send', 0, 0)"
        )
        made = connection.run(store.cron.make()).made
        assert [(one.entry, len(one.jobs)) for one in made] == [("plain", 3)]
        assert connection.run(store.cron.make()).made == []
        connection.run(store.tidy())
        [one] = connection.run(store.cron.make()).made
        assert (one.entry, len(one.jobs)) == ("unique", 1)
