"""Handlers that take a `Context`, called directly; and tasks of a script that is started."""

import subprocess
import sys
from pathlib import Path

from rota import Context, Rota


def test_direct_calls(tmp_path: Path) -> None:
    """A direct call gets a context of its own, wherever its parameter stands, or the one given."""
    rota = Rota(f"sqlite:///{tmp_path}/rota.db")

    @rota.task(name="first")
    def first(ctx: Context, rows: int) -> tuple[int, int, bool]:
        return ctx.job_id, rows + ctx.attempt, ctx.cancelled

    @rota.task(name="last")
    def last(rows: int, *, ctx: Context) -> tuple[int, int, bool]:
        return ctx.job_id, rows + ctx.attempt, ctx.cancelled

    given = Context.alone(first.spec)
    given.request_cancel()
    assert first(7) == (0, 8, False)
    assert first(rows=7) == (0, 8, False)
    plain_first: object = first
    assert callable(plain_first)
    assert plain_first(given, 7) == (0, 8, True)
    assert last(7, ctx=given) == (0, 8, True)
    plain: object = last
    assert callable(plain)
    assert plain(7) == (0, 8, False)


def test_the_script_that_is_started(tmp_path: Path) -> None:
    """A task of a started script has the name by which a worker imports it."""
    script = tmp_path / "shop.py"
    script.write_text(
        "from rota import Rota\n"
        "rota = Rota('sqlite:///unused.db')\n"
        "@rota.task\n"
        "def add(one: int) -> None: ...\n"
        "print(add.name)\n"
    )
    for command in ([str(script)], ["-m", "shop"]):
        said = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert said.stdout == "shop.add\n"
