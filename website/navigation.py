"""What the site has, in the order in which it is listed. Each page stands here once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the listing.

    Attributes:
        title: What is written above its pages.
        pages: Names of pages on the site, without a suffix.
    """

    title: str
    pages: tuple[str, ...]


SECTIONS = (
    Section(
        "Get started",
        ("start/install", "start/quickstart", "start/comparison", "examples"),
    ),
    Section(
        "Jobs",
        (
            "guides/tasks",
            "guides/transactions",
            "guides/testing",
            "guides/cron",
            "guides/unique",
            "guides/limits",
            "guides/queues",
            "guides/progress",
            "guides/steps",
            "guides/flows",
            "guides/batches",
            "guides/relays",
            "guides/lifespan",
            "guides/events",
            "guides/jobs",
            "guides/sql",
        ),
    ),
    Section(
        "Your framework",
        ("frameworks/django", "frameworks/fastapi", "frameworks/flask", "frameworks/sqlalchemy"),
    ),
    Section(
        "In production",
        (
            "operate/running",
            "operate/operations",
            "operate/deploys",
            "operate/tables",
            "operate/database",
            "operate/doctor",
            "operate/dashboard",
            "operate/observability",
            "operate/commands",
            "guides/scaling",
            "guides/shards",
        ),
    ),
    Section("Coming from", ("coming-from/celery", "coming-from/rq", "coming-from/procrastinate")),
    Section(
        "How it works",
        (
            "how/guarantees",
            "project/architecture",
            "how/engine",
            "how/built-on-it",
            "how/internals",
            "how/benchmarks",
            "lab/index",
            "lab/findings",
        ),
    ),
    Section(
        "Reference",
        (
            "reference/index",
            "reference/app",
            "reference/tasks",
            "reference/handlers",
            "reference/jobs",
            "reference/flows",
            "reference/workers",
            "reference/errors",
            "reference/events",
            "reference/cron",
            "reference/testing",
            "reference/relays",
            "reference/integrations",
            "reference/commands",
            "reference/settings",
            "reference/sql",
            "reference/metrics",
            "reference/glossary",
        ),
    ),
    Section(
        "The project",
        ("project/changelog", "project/contributing", "project/security"),
    ),
)
