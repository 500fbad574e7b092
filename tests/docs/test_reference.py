"""The reference has words for everything that users can meet."""

import re
from pathlib import Path

import click
import pytest

from rota.cli.main import cli
from website import reference
from website.reference import commands, metrics, public, sql
from website.reference.package import find


def test_everything_has_words() -> None:
    """Each public name, method, event, error and metric is explained.

    So is each command, option, setting and table.
    """
    assert reference.untold() == []


@pytest.mark.parametrize(
    "path", ["rota.Backoff", "rota.events.JobStarted", "rota.testing.Kit.drain"]
)
def test_a_name_without_words_is_told(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class, an event or a method that loses its docstring is noticed."""
    monkeypatch.setattr(find(path), "docstring", None)
    assert [name for name in reference.untold() if name.rpartition(".")[2] in path]


def test_a_name_that_no_page_has_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A public name of the package that is on no page is noticed."""
    pages = [page for page in public.PAGES if page.name != "reference/workers"]
    monkeypatch.setattr(reference.python, "PAGES", pages)
    assert {"Worker", "WorkerConfig"} <= set(reference.untold())


def test_an_option_without_words_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """An option of a command that loses its help is noticed."""
    context = click.Context(cli)
    worker = cli.get_command(context, "worker")
    assert worker is not None
    [grace] = [
        one for one in worker.params if isinstance(one, click.Option) and one.name == "grace"
    ]
    monkeypatch.setattr(grace, "help", None)
    assert commands.untold() == ["rota worker --grace"]


def test_a_table_without_words_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that loses its comment is noticed, and one that keeps it is not."""
    text = sql.SCHEMA.read_text(encoding="utf-8")
    bare = re.sub(r"(?:--.*\n)+(?=CREATE TABLE rota\.queue_setting )", "", text)
    assert bare != text
    (tmp_path / "schema.sql").write_text(bare)
    monkeypatch.setattr(sql, "SCHEMA", tmp_path / "schema.sql")
    assert sql.untold() == ["rota.queue_setting"]


def test_a_metric_of_another_form_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric that is made in a way the reference does not read is noticed."""
    monkeypatch.delitem(metrics.KINDS, "_gauge")
    assert "rota_workers" in metrics.untold()
