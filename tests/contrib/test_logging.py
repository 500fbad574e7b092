"""`rota.logging`: which job a line of log comes from."""

import logging
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
import structlog

from rota import Context, Rota
from rota.app.executor import Executor
from rota.logging import JobFields
from tests.fixtures.workers import drained

LINE = (
    "%(message)s job=%(job)s task=%(task)s queue=%(queue)s attempt=%(attempt)s trace=%(trace_id)s"
)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Rota]:
    """Nothing here differs between the stores."""
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app:
        yield app


@pytest.fixture
def lines() -> list[str]:
    """What was logged."""
    return []


@pytest.fixture
def logger(app: Rota, lines: list[str]) -> Iterator[logging.Logger]:
    """A logger whose handler has the filter."""

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Keeping()
    handler.setFormatter(logging.Formatter(LINE))
    handler.addFilter(JobFields(app))
    logger = logging.getLogger("shop")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield logger
    logger.removeHandler(handler)


@pytest.mark.parametrize("executor", [Executor.LOOP, Executor.THREAD])
def test_lines_of_handlers(
    app: Rota, logger: logging.Logger, lines: list[str], executor: Executor
) -> None:
    """They name their job, also where another module logs; outside of runs there is nothing to say."""

    async def on_loop() -> None:
        logger.getChild("mail").info("sent")

    def in_thread() -> None:
        logger.getChild("mail").info("sent")

    task: Any = app.task(name="send", queue="mail")(
        on_loop if executor is Executor.LOOP else in_thread
    )
    job = task.enqueue()
    logger.info("before")
    drained(app)
    logger.info("after")
    nothing = "job=None task=None queue=None attempt=None trace=None"
    assert lines == [
        f"before {nothing}",
        f"sent job={job.id} task=send queue=mail attempt=1 trace=None",
        f"after {nothing}",
    ]


def test_what_a_record_has_already(app: Rota) -> None:
    """Fields that a caller gave stay, such as those of Rota's own lines."""
    record = logging.makeLogRecord({"msg": "lost", "job": 7})
    assert JobFields(app).filter(record)
    assert (vars(record)["job"], vars(record)["task"]) == (7, None)


def test_structlog(app: Rota) -> None:
    """The same is a processor, beside the context variables that handlers bind."""
    said: list[dict[str, Any]] = []

    def keep(
        logger: object, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        del logger, method
        said.append(dict(event))
        raise structlog.DropEvent

    log = structlog.wrap_logger(
        None, [structlog.contextvars.merge_contextvars, JobFields(app), keep]
    )

    @app.task(name="send", queue="mail")
    async def send(ctx: Context, order: int) -> None:
        del ctx
        with structlog.contextvars.bound_contextvars(order=order):
            log.info("sent", attempt="first")

    job = send.enqueue(42)
    log.info("before")
    drained(app)
    assert said == [
        {"event": "before"},
        {"event": "sent", "order": 42, "job": job.id, "task": "send", "queue": "mail",
         "attempt": "first"},
    ]  # fmt: skip


def test_runners_stay(app: Rota) -> None:
    """What knows the run leaves nothing behind, so that runners need not be replaced after each job."""
    left: list[bool] = []
    JobFields(app)

    @app.task(name="look")
    async def look() -> None: ...

    async def around(run: Any, call_next: Callable[[], Awaitable[Any]]) -> Any:
        del run
        clean = copy_context()
        value = await call_next()
        left.append(copy_context() != clean)
        return value

    app.middleware.running.insert(0, around)
    look.enqueue()
    drained(app)
    assert left == [False]
