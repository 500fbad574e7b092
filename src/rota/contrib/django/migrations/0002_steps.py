"""What jobs remember between their runs."""

from typing import ClassVar

from django.db import migrations

from rota.contrib.django.migrating import RotaTables


class Migration(migrations.Migration):
    """Each step is whole by itself, and is tried again where others use the tables."""

    atomic = False
    dependencies: ClassVar[list[tuple[str, str]]] = [("rota", "0001_tables")]
    operations: ClassVar = [RotaTables(postgres=26, sqlite=16)]
