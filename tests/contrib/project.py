"""A project that migrates with Alembic, as the tests of `rota.alembic` need it."""

from io import StringIO
from pathlib import Path
from textwrap import dedent
from warnings import catch_warnings, simplefilter

from alembic.config import CommandLine, Config
from sqlalchemy.exc import SAWarning

ENV = """
from alembic import context
from sqlalchemy import NullPool, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
import rota.alembic


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)


class Shift(Base):
    __tablename__ = "rota_shifts"
    id: Mapped[int] = mapped_column(primary_key=True)


settings = {{
    "target_metadata": Base.metadata, "include_schemas": {schemas}, "include_name": {include_name},
}}
url = {url!r}
if context.is_offline_mode():
    context.configure(url=url, literal_binds=True, **settings)
    with context.begin_transaction():
        context.run_migrations()
else:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        context.configure(connection=connection, **settings)
        with context.begin_transaction():
            context.run_migrations()
"""

MAKO = '''
"""${message}"""
from alembic import op
import sqlalchemy as sa
import rota.alembic
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}

def upgrade():
    ${upgrades if upgrades else "pass"}

def downgrade():
    ${downgrades if downgrades else "pass"}
'''

REVISION = """
import rota.alembic
from alembic import op

revision = {revision!r}
down_revision = {down_revision!r}


def upgrade():
{upgrade}


def downgrade():
{downgrade}
"""


class Project:
    """A folder with env.py and revisions, for a database."""

    def __init__(self, folder: Path, url: str, *, include_name: str, schemas: bool) -> None:
        self.folder = folder
        (folder / "migrations/versions").mkdir(parents=True)
        (folder / "alembic.ini").write_text(
            "[alembic]\nscript_location = %(here)s/migrations\npath_separator = os\n"
        )
        env = ENV.format(url=url, include_name=include_name, schemas=schemas)
        (folder / "migrations/env.py").write_text(env)
        (folder / "migrations/script.py.mako").write_text(MAKO)
        self._last: str | None = None

    def revise(self, name: str, upgrade: str, downgrade: str = "pass") -> None:
        """Write a revision after the last one."""
        text = REVISION.format(
            revision=name,
            down_revision=self._last,
            upgrade=_indented(upgrade),
            downgrade=_indented(downgrade),
        )
        (self.folder / f"migrations/versions/{name}.py").write_text(text)
        self._last = name

    def alembic(self, *words: str) -> str:
        """Run the command, in this process; what it printed."""
        printed = StringIO()
        line = CommandLine()
        options = line.parser.parse_args(["--raiseerr", *words])
        ini = self.folder / "alembic.ini"
        config = Config(ini, stdout=printed, output_buffer=printed, cmd_opts=options)
        with catch_warnings():
            # Types that SQLAlchemy does not know, in tables that are not the project's.
            simplefilter("ignore", SAWarning)
            line.run_cmd(config, options)
        return printed.getvalue()

    def generated(self) -> str:
        """What `alembic revision --autogenerate` writes now."""
        versions = self.folder / "migrations/versions"
        before = set(versions.glob("*.py"))
        self.alembic("revision", "--autogenerate", "-m", "what differs")
        [made] = set(versions.glob("*.py")) - before
        text = made.read_text()
        made.unlink()
        return text


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in dedent(code).strip().splitlines())
