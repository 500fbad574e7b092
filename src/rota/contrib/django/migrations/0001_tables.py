"""Rota's tables, and the model that looks at their jobs."""

from typing import ClassVar

from django.db import migrations, models

from rota.contrib.django.fields import JsonText, Moment, job_table
from rota.contrib.django.migrating import RotaTables
from rota.model.states import State


class Migration(migrations.Migration):
    """Each step is whole by itself, and is tried again where others use the tables."""

    initial = True
    atomic = False
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar = [
        RotaTables(postgres=25, sqlite=15, first=True),
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("task", models.TextField()),
                ("queue", models.TextField()),
                ("state", models.TextField(choices=[(each.value, each.value) for each in State])),
                ("priority", models.IntegerField()),
                ("attempt", models.IntegerField()),
                ("max_attempts", models.IntegerField()),
                ("enqueued_at", Moment()),
                ("scheduled_at", Moment(null=True)),
                ("finished_at", Moment(null=True)),
                ("args", JsonText()),
                ("result", JsonText(null=True)),
                ("errors", JsonText(null=True)),
                ("unique_key", models.TextField(null=True)),
            ],
            options={
                "db_table": job_table(),
                "managed": False,
                "ordering": ["-id"],
                "default_permissions": ("view",),
                "permissions": [
                    ("retry_job", "Can retry jobs"),
                    ("cancel_job", "Can cancel jobs"),
                    ("discard_job", "Can discard jobs"),
                ],
            },
        ),
    ]
