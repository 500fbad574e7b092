"""A Flask application whose mail is sent by jobs.

They are enqueued in the request's transaction, and run in an application context.

Needs `rota[flask]` and `flask-sqlalchemy`. As a server: `flask --app flask_mail run`, and beside it
`flask --app flask_mail rota worker`. Run as a program it shows one round in a folder of its own.
"""

import tempfile
from pathlib import Path

from flask import Flask, current_app, render_template_string
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from rota import Rota, WorkerConfig
from rota.contrib.flask import RotaFlask
from rota.worker import Worker


class Base(DeclarativeBase):
    """The application's tables."""


db = SQLAlchemy(model_class=Base)
rota = Rota()
rota_flask = RotaFlask(rota)


class User(Base):
    """A user who has signed up."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


@rota.task(queue="mail", max_attempts=3)
def welcome(user: int) -> None:
    """Pretend to send a mail, with the application's config, templates and session as in a request."""
    found = db.session.get_one(User, user)
    text = render_template_string("Welcome, {{ name }}!", name=found.name)
    print(f"{current_app.config['SENDER']}: {text}")


def create_app(folder: str = ".") -> Flask:
    """The application, with its database in a folder."""
    app = Flask(__name__)
    file = f"sqlite:///{Path(folder).resolve()}/shop.db"
    app.config["SENDER"] = "shop@example.org"
    app.config["SQLALCHEMY_DATABASE_URI"] = app.config["ROTA_DATABASE_URL"] = file
    db.init_app(app)
    rota_flask.init_app(app)
    rota.ready()
    with app.app_context():
        Base.metadata.create_all(db.engine)

    @app.post("/users/<name>")
    def sign_up(name: str) -> str:
        user = User(name=name)
        db.session.add(user)
        db.session.flush()
        welcome.using(conn=db.session).enqueue(user.id)
        if name == "Eve":
            db.session.rollback()
            return "refused"
        db.session.commit()
        return "signed up"

    return app


def main() -> None:
    """Sign two users up, one of them in vain, and run the mail's jobs."""
    with tempfile.TemporaryDirectory() as folder, rota:
        app = create_app(folder)
        client = app.test_client()
        for name in ("Ada", "Eve"):
            print(f"{name}: {client.post(f'/users/{name}').text}")
        Worker(rota, WorkerConfig(drain=True)).run()
        with app.app_context():
            db.engine.dispose()


if __name__ == "__main__":
    main()
