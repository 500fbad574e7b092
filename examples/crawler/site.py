"""A small website to crawl: ten static pages, news that change, and a link that leads nowhere."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

PAGES = {
    "/": '<a href="/news">News</a> <a href="/page/1">One</a> <a href="/gone">Gone</a>',
    **{f"/page/{n}": f'<a href="/">Home</a> <a href="/page/{n + 1}">Next</a>' for n in range(1, 9)},
    "/page/9": '<a href="/">Home</a>',
}
headlines = itertools.count(1)


class Handler(BaseHTTPRequestHandler):
    """Answers with one of the pages."""

    def do_GET(self) -> None:
        """A page, or that there is none."""
        text = f"Headline {next(headlines)}" if self.path == "/news" else PAGES.get(self.path)
        self.send_response(404 if text is None else 200)
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[str]:
    """The site, until the end of the block; the block gets its host and port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
