"""Whether each job ran once."""

from collections.abc import Iterable


class NotOnce(Exception):
    """Jobs were lost, or ran more than once: what was measured does not count."""


def check(ran: Iterable[int], enqueued: int, waiting: int = 0) -> int:
    """How many jobs ran; their numbers are those from 0 to `enqueued`.

    Args:
        ran: The number of each handler's run.
        enqueued: How many jobs there were.
        waiting: How many of them are still in the queue.

    Raises:
        NotOnce: Some ran more than once, or neither ran nor wait.
    """
    runs = list(ran)
    jobs = set(runs)
    wrong = []
    if unknown := len(jobs - set(range(enqueued))):
        wrong.append(f"ran {unknown} jobs that were not enqueued")
    if repeated := len(runs) - len(jobs):
        wrong.append(f"repeated {repeated} of {enqueued} jobs")
    if (lost := enqueued - len(jobs) - waiting) > 0:
        wrong.append(f"lost {lost} of {enqueued} jobs")
    if wrong:
        raise NotOnce(" and ".join(wrong))
    return len(jobs)
