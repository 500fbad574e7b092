"""Fields that read what Rota stores, alike on both databases, and the table that has it."""

import json
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connections, models
from django.utils import timezone

from rota.contrib.django.address import default_alias


def job_table() -> str:
    """The table, or view, of all jobs, as `Meta.db_table` has it."""
    # Django puts this into quotes, hence the two inside.
    return 'rota"."job' if connections[default_alias()].vendor == "postgresql" else "rota_job"


class Moment(models.FloatField):
    """A moment: a `timestamptz` on PostgreSQL, seconds since 1970 on SQLite."""

    def from_db_value(self, value: Any, *rest: Any) -> datetime | None:
        """The moment, as the project has its times."""
        del rest
        if value is None or isinstance(value, datetime):
            return value
        moment = datetime.fromtimestamp(value, UTC)
        return moment if settings.USE_TZ else timezone.make_naive(moment)


class JsonText(models.TextField):
    """JSON, as text."""

    def from_db_value(self, value: Any, *rest: Any) -> str | None:
        """The text; some drivers have read it already."""
        del rest
        if value is None or isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
