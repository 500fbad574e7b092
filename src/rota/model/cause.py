"""Why a job was discarded, in a few words: jobs with the same cause belong together."""

from rota.model.job import AttemptError, JobRecord

BEGIN = '\n  File "'
"""Of a frame in a traceback."""


def cause(job: JobRecord) -> str:
    """The last attempt's exception and its origin, such as `KeyError in shop/mail.py:17 send`."""
    if not job.errors:
        return "no exception"
    last = job.errors[-1]
    where = frame(last.traceback)
    return f"{exception(last)} in {where}" if where else exception(last)


def exception(error: AttemptError) -> str:
    """The name of an exception, for people."""
    return error.exception.removeprefix("builtins.")


def frame(traceback: str) -> str:
    """Where it happened: the last frame of a traceback, such as `shop/mail.py:17 send`."""
    # From the end: many tracebacks are read for one page, and the frame is among their last lines.
    start = len(traceback)
    while (start := traceback.rfind(BEGIN, 0, start)) >= 0:
        line = traceback[start + len(BEGIN) :].partition("\n")[0].strip()
        path, found, rest = line.partition('", line ')
        if found:
            number, _, function = rest.partition(", in ")
            return f"{'/'.join(path.split('/')[-2:])}:{number} {function}".strip()
    return ""
