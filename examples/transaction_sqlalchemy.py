"""A job that exists if and only if the order it is about exists: a SQLAlchemy session.

Needs `rota[sqlalchemy]`.
"""

import tempfile

from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from rota import Rota, State, WorkerConfig
from rota.worker import Worker

rota = Rota()


class Base(DeclarativeBase):
    """The application's tables."""


class Order(Base):
    """What a customer has bought."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)


@rota.task
def send_receipt(order: int) -> None:
    """Pretend to send a receipt."""
    print(f"receipt for order {order}")


def main() -> None:
    """Enqueue in a session that is rolled back, then in one that is committed."""
    with tempfile.TemporaryDirectory() as folder, rota:
        rota.use(f"sqlite:///{folder}/shop.db")
        rota.ready()
        engine = create_engine(f"sqlite:///{folder}/shop.db")
        Base.metadata.create_all(engine)

        with Session(engine) as session:
            session.add(Order(id=41))
            send_receipt.using(conn=session).enqueue(41)
            session.rollback()
            show("rolled back", session)

            session.add(Order(id=42))
            send_receipt.using(conn=session).enqueue(42)
            session.commit()
            show("committed", session)
        engine.dispose()

        Worker(rota, WorkerConfig(drain=True)).run()


def show(when: str, session: Session) -> None:
    """Count what there is."""
    orders = session.scalar(select(func.count()).select_from(Order))
    jobs = rota.jobs.count(state=State.AVAILABLE)
    print(f"{when}: {orders} orders, {jobs} jobs")


if __name__ == "__main__":
    main()
