"""The shop's settings: on SQLite, or on the PostgreSQL of SHOP_DATABASE_URL."""

import os
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import django

FOLDER = Path(__file__).resolve().parent.parent


def database(url: str) -> dict[str, object]:
    """An entry of DATABASES from `sqlite:///file` or `postgresql://user@host/name`."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        # Transactions that will write begin as writers, so that workers cannot come between.
        options: dict[str, str] = {"transaction_mode": "IMMEDIATE"}
        name = parts.path.removeprefix("/")
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": name, "OPTIONS": options}
    given = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.removeprefix("/"),
        "USER": unquote(parts.username or "") or given.pop("user", ""),
        "PASSWORD": unquote(parts.password or "") or given.pop("password", ""),
        "HOST": parts.hostname or given.pop("host", ""),
        "PORT": str(parts.port or given.pop("port", "")),
        "OPTIONS": given,
    }


DATABASES = {
    "default": database(os.environ.get("SHOP_DATABASE_URL", f"sqlite:///{FOLDER / 'shop.db'}"))
}
TASKS = {"default": {"BACKEND": "rota.contrib.django.backend.RotaBackend"}}

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "rota.contrib.django",
    "shop",
]
if django.VERSION < (6, 0):
    # Django's tasks for Django 5.2.
    INSTALLED_APPS.append("django_tasks")

ROOT_URLCONF = "shop.urls"
SECRET_KEY = "this is an example, and not secret"  # noqa: S105 - of an example
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL = "static/"
