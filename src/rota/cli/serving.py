"""Commands that serve pages until they are stopped."""

from rota.errors import ConfigError
from rota.service.endpoint import Address
from rota.service.web import Application, Server
from rota.terminal.output import say, say_json


def serve(app: Application, listen: Address, path: str, *, warning: str, as_json: bool) -> None:
    """Say where the page is, and answer requests until Ctrl-C.

    Args:
        app: What answers.
        listen: Where to listen; port 0 takes one that is free.
        path: Of the page to be looked at first.
        warning: Said to people, if there is something to be said.
        as_json: Whether programs are told where it is.

    Raises:
        ConfigError: That address cannot be listened on.
    """
    try:
        server = Server(listen.host, listen.port, app)
    except OSError as error:
        message = f"--listen: cannot listen on {listen}: {error.strerror}"
        raise ConfigError(message) from error
    with server:
        address = f"http://{Address(listen.host, server.server_port)}{path}"
        if as_json:
            say_json({"url": address})
        else:
            say(f"{address}  (Ctrl+C ends it)")
            if warning:
                say(warning)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say()
