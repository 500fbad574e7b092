"""The pages, one module each, and the table of their routes."""

from rota.dashboard import files
from rota.dashboard.access import Right
from rota.dashboard.pages import (
    acting,
    audit,
    cron,
    discarded,
    doctor,
    flow,
    flows,
    history,
    job,
    jobs,
    limits,
    many,
    overview,
    queues,
    workers,
)
from rota.dashboard.routes import Call, Route

ROUTES: tuple[Route[Call], ...] = (
    Route("GET", "/", Right.READ, overview.overview, live=True),
    Route("GET", "/queues", Right.READ, queues.queues, live=True),
    Route("GET", "/queue", Right.READ, queues.queue, live=True),
    Route("GET", "/history", Right.READ, history.history),
    Route("GET", "/jobs", Right.READ, jobs.jobs),
    Route("GET", "/jobs/{id}", Right.READ, job.job, live=True),
    Route("GET", "/flows", Right.READ, flows.flows, live=True),
    Route("GET", "/flows/{id}", Right.READ, flow.flow, live=True),
    Route("GET", "/discarded", Right.READ, discarded.discarded),
    Route("GET", "/cron", Right.READ, cron.cron, live=True),
    Route("GET", "/limits", Right.ARGS, limits.limits, live=True),
    Route("GET", "/workers", Right.READ, workers.workers, live=True),
    Route("GET", "/doctor", Right.READ, doctor.doctor),
    Route("GET", "/audit", Right.READ, audit.audit),
    Route("GET", "/static/{name}", Right.READ, files.file),
    *acting.ROUTES,
    *many.ROUTES,
)
"""Every route: what is not here is not answered."""
