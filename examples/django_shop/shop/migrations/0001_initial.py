"""The table of orders."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Makes it."""

    initial = True
    dependencies: list[tuple[str, str]] = []  # noqa: RUF012 - as Django writes it
    operations = [  # noqa: RUF012
        migrations.CreateModel(
            name="Order",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("email", models.EmailField(max_length=254)),
                ("cents", models.IntegerField()),
                ("receipt_sent", models.BooleanField(default=False)),
            ],
        ),
    ]
