"""Which names of Python are public, and on which page of the reference they are."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Name:
    """Something with a docstring.

    Attributes:
        path: Where it is imported from, or, where users get it from something else, where it is
            defined.
        shown: What users write instead of its path, such as `rota.jobs`.
    """

    path: str
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the reference.

    Attributes:
        name: On the site.
        title: Its heading.
        says: For whom it is, with a link to the page that explains.
        names: In this order.
        modules: Whose public names it has, all of them; those in `names` come first.
    """

    name: str
    title: str
    says: str
    names: tuple[Name, ...]
    modules: tuple[str, ...] = ()


def of_rota(*names: str) -> tuple[Name, ...]:
    """Names of the package itself."""
    return tuple(Name(f"rota.{name}") for name in names)


PAGES = (
    Page(
        "reference/app",
        "The app",
        "`Rota`, and what an app gives you: its queues, jobs, tables, cron entries. [Tasks](../guides/tasks.md) and "
        "[Jobs from Python](../guides/jobs.md) explain it.",
        (
            *of_rota("Rota"),
            Name("rota.app.jobs.Jobs", "rota.jobs"),
            Name("rota.app.admin.Admin", "rota.admin"),
            Name("rota.app.crontab.Crontab", "rota.cron"),
            Name("rota.app.lifespan.Lifespans", "rota.lifespan"),
            Name("rota.database.transaction_block.OwnTransaction", "rota.transaction()"),
            *of_rota("QueueHandle", "QueueSettings"),
            Name("rota.app.shards.Shards", "Rota.shards(…)"),
            Name("rota.dashboard.Access"),
            Name("rota.dashboard.Right"),
        ),
    ),
    Page(
        "reference/tasks",
        "Tasks",
        "What `@rota.task` makes of a function, and what its options are made of. [Tasks](../guides/tasks.md) explains it, with "
        "[unique jobs](../guides/unique.md), [limits](../guides/limits.md) and [batches](../guides/batches.md).",
        of_rota(
            "Task",
            "BatchTask",
            "Backoff",
            "Limit",
            "Unique",
            "Executor",
            "PROVIDED",
            "Secret",
            "EnqueueCall",
            "Enqueued",
            "Placing",
        ),
    ),
    Page(
        "reference/handlers",
        "In a handler",
        "The context of a run, and what a handler may return or raise. [Tasks](../guides/tasks.md#context) and "
        "[steps](../guides/steps.md) explain it.",
        (
            *of_rota("Context", "BatchContext"),
            Name("rota.app.job_transaction.JobTransaction", "ctx.transaction()"),
            Name("rota.app.step_transaction.StepTransaction", "ctx.step_transaction()"),
            *of_rota("Again", "Discard", "Retry", "Snooze"),
        ),
    ),
    Page(
        "reference/jobs",
        "Jobs",
        "Handles, and the records that are read from the database. [Jobs from Python](../guides/jobs.md) and "
        "[results, progress, logs](../guides/progress.md) explain them.",
        of_rota(
            "JobHandle",
            "JobId",
            "State",
            "JobRecord",
            "Progress",
            "LogLine",
            "Change",
            "StepRecord",
            "FinishedJob",
            "QueueRecord",
            "LimitRecord",
            "HistoryPoint",
            "AuditRecord",
        ),
    ),
    Page(
        "reference/flows",
        "Flows",
        "What `rota.flow(…)` gives, and what is read of flows. [Flows](../guides/flows.md) explains them.",
        (
            Name("rota.app.flow.Flow", "rota.flow(…)"),
            Name("rota.app.flow.Group"),
            Name("rota.app.flow_node.Node"),
            Name("rota.app.flow_node.Map"),
            Name("rota.app.flows.Flows", "rota.flows"),
            *of_rota(
                "FlowHandle",
                "FlowRecord",
                "FlowState",
                "FlowGraph",
                "NodeRecord",
                "NodeState",
                "Results",
            ),
        ),
    ),
    Page(
        "reference/workers",
        "Workers",
        "A worker in your own process, its settings, and what is known of workers. [Running workers](../operate/running.md) explains them.",
        of_rota("Worker", "WorkerConfig", "WorkerRecord", "HeldJob"),
    ),
    Page(
        "reference/errors",
        "Errors",
        "Every error that Rota raises, or writes into a job's errors: `rota.errors`, and most of them in `rota` as well.",
        of_rota("ChildDied", "NodeLost"),
        ("rota.errors",),
    ),
    Page(
        "reference/events",
        "Events",
        "What `@rota.on(…)` can subscribe to: `rota.events`. [Events and middleware](../guides/events.md) explains it.",
        (),
        ("rota.events",),
    ),
    Page(
        "reference/cron",
        "Due times",
        "For checks of your own expressions: `rota.cron`. [Cron](../guides/cron.md) explains entries; `rota.cron` of an app is on the page of [the app](app.md).",
        (),
        ("rota.cron",),
    ),
    Page(
        "reference/testing",
        "The test kit",
        "The fixture `rota_test`, which is a `Kit`, and what it gives: `rota.testing`. [Testing](../guides/testing.md) explains it.",
        (Name("rota.testing.Kit"),),
        ("rota.testing",),
    ),
    Page(
        "reference/relays",
        "Relays",
        "What `rota.relay(…)` gives, and where it can send: `rota.relay`. [Relays](../guides/relays.md) explains them.",
        (Name("rota.relay.Relay"),),
        ("rota.relay",),
    ),
    Page(
        "reference/integrations",
        "Integrations",
        "What joins Rota and other libraries. The pages of [Django](../frameworks/django.md), [FastAPI, Starlette, Litestar](../frameworks/fastapi.md), "
        "[Flask](../frameworks/flask.md), [SQLAlchemy and Alembic](../frameworks/sqlalchemy.md) and "
        "[metrics, traces, errors and logs](../operate/observability.md) explain them.",
        (
            Name("rota.contrib.django.DjangoRota"),
            Name("rota.contrib.django.backend.RotaBackend"),
            Name("rota.contrib.django.dashboard.dashboard"),
            Name("rota.contrib.starlette.web_lifespan"),
            Name("rota.contrib.starlette.worker_beside"),
            Name("rota.contrib.litestar.RotaPlugin"),
            Name("rota.contrib.flask.RotaFlask"),
            Name("rota.alembic.upgrade"),
            Name("rota.alembic.downgrade"),
            Name("rota.alembic.include_name"),
            Name("rota.prometheus.instrument"),
            Name("rota.prometheus.exposition"),
            Name("rota.otel.instrument"),
            Name("rota.sentry.instrument"),
            Name("rota.logging.JobFields"),
        ),
    ),
)

HIDDEN = {
    # Public in their spelling alone: for Rota's other modules.
    "Context": {"alone", "request_cancel", "noticed"},
    "BatchContext": {"alone", "request_cancel", "noticed"},
    "Crontab": {"declarations", "declared"},
    "EnqueuedJob": {"of", "ended", "differences", "found_among", "nearest_first"},
    "Executor": {"named", "fitting"},
    "Kit": {"close", "guard"},
    "Lifespans": {"of_worker", "of_children"},
    "Shards": {"register"},
    "Task": {"needs", "options"},
    "BatchTask": {"needs", "options"},
}
"""Members that no program should use, by the names of their classes."""
