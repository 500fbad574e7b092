"""The service's own table, in the database that has the jobs, too."""

from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from .jobs import rota

DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+psycopg"}

url = make_url(rota.url)
engine = create_async_engine(url.set(drivername=DRIVERS[url.drivername]))
sessions = async_sessionmaker(engine, expire_on_commit=False)


class Base(DeclarativeBase):
    """The service's tables."""


class Order(Base):
    """What a customer has ordered."""

    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    items: Mapped[int]
