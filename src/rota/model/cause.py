"""Why a job was discarded, in a few words: jobs with the same cause belong together."""

from rota.model.job import AttemptError, JobRecord


def cause(job: JobRecord) -> str:
    """The exception of its last attempt and where that came from, such as `KeyError in shop/mail.py:17 send`."""
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
    for line in reversed(traceback.splitlines()):
        told = line.strip()
        if told.startswith('File "') and '", line ' in told:
            path, _, rest = told.removeprefix('File "').partition('", line ')
            number, _, function = rest.partition(", in ")
            return f"{'/'.join(path.split('/')[-2:])}:{number} {function}".strip()
    return ""
