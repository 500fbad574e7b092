"""What hostile jobs and impossible questions do to a page: nothing."""

import pytest

from rota import Context, Rota
from tests.browser.chromium import NARROW
from tests.browser.person import Person
from tests.fixtures.workers import until, working

EVIL = "\"'></td></script><script>document.title='owned'</script><img src=x onerror=document.title='owned'><b>&amp;{{ 7*7 }}"


def test_markup(person: Person, app: Rota) -> None:
    """Names, args, messages and lines are shown as they are; no script runs.

    The narrow page is no wider.
    """

    @app.task(name=EVIL, queue=EVIL, max_attempts=1, unique="{text}")
    def task(context: Context, text: str) -> None:
        context.log(text)
        context.progress(0.5, text)
        raise ValueError(text)

    job = task.enqueue(EVIL)
    with working(app):
        until(lambda: app.jobs.count(state="discarded"), "the job")
    task.enqueue(EVIL)
    app.cron.add(EVIL, "@daily", task, args=(EVIL,))
    browser = person.browser
    browser.appear(size=NARROW)
    for path, asked in (
        ("/", {}), ("/queues", {}), ("/queue", {"name": EVIL}), ("/jobs", {"task": EVIL, "queue": EVIL}),
        (f"/jobs/{job.id}", {}), ("/discarded", {}), ("/cron", {}),
    ):  # fmt: skip
        person.goes_to(path, **asked)
        assert "<img src=x" in browser.text("main"), path
        assert browser.title != "owned"
        assert browser.all("main img, main script:not([src]), main b > b") == []
        assert browser.too_wide() == [], path
    # News are put in by script: these come from the stream.
    person.goes_to("/queues")
    task.using(queue="zz").enqueue("another")
    browser.until_seen("zz", "#live")
    assert browser.title == "Queues · Rota"


def test_a_million_characters(person: Person, app: Rota) -> None:
    """A page shows the beginning and the end of a text, and stays usable."""

    @app.task(name="long", max_attempts=1)
    def long(context: Context, text: str) -> None:
        context.log(text)
        raise ValueError(2 * text)

    job = long.enqueue(500_000 * "x")
    with working(app):
        until(lambda: app.jobs.count(state="discarded"), "the job")
    browser = person.browser
    browser.appear(size=NARROW)
    person.goes_to(f"/jobs/{job.id}")
    assert "characters left out" in browser.text("main")
    assert len(browser.text("main")) < 200_000
    assert browser.too_wide() == []


@pytest.mark.large  # tests/dashboard asks for these without a browser
@pytest.mark.parametrize(
    ("path", "asked", "words"),
    [
        ("/jobs/4711", {}, "There is no job 4711"),
        ("/jobs", {"state": "lost"}, "lost"),
        ("/jobs", {"arg": EVIL}, "must be name=value"),
        ("/queue", {"name": EVIL}, "There is no queue named"),
        ("/nowhere", {}, "There is no such page."),
    ],
)
def test_what_cannot_be(person: Person, path: str, asked: dict[str, str], words: str) -> None:
    """A plain page says so, and leads back."""
    person.goes_to(path, **asked)
    assert words in person.browser.text(".refused")
    assert person.browser.title != "owned"
    assert all("Failed to load" in line for line in person.browser.complaints())
    person.follows("Back to the overview")
    assert person.browser.title == "Overview · Rota"
