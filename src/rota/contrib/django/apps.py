"""The app that a project puts into INSTALLED_APPS."""

from django.apps import AppConfig
from django.core import checks


class RotaConfig(AppConfig):
    """Rota's tables, commands, checks and page of jobs."""

    name = "rota.contrib.django"
    label = "rota"
    verbose_name = "Rota"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks."""
        from rota.contrib.django.checks import check_database, check_settings, check_transactions

        checks.register(check_settings)
        checks.register(check_transactions, deploy=True)
        checks.register(check_database, checks.Tags.database)
