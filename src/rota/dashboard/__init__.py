"""`rota[dashboard]`: a page for people who look after jobs.

The model. A skin (`asgi`, `wsgi`, Django's view) turns what its framework gives into a `Request`,
and asks the user's `access` what the request may do. `core` finds the route, checks the right that
the route declares, and calls its page; no page is called without that check. A page is a function
that reads facts from the store and gives a `Page`: a template's name and plain data. The core
writes it as HTML or, for programs, as JSON, and puts the same headers on every answer.

access     what a request may do: rights, and the values `Access`
message    the request and the response, as values
safety     the headers of every answer, and which requests may change something
routes     the table of routes: path, right, page
core       from a request to a response
several    the same where several databases are one app: the pages of each, and one of all
rendering  pages as HTML and as JSON
files      style sheets and scripts
looks      one look at the database a second, shared by everything that shows it
listing    one page of jobs, within a bound
why        why a job does not run: facts to sentences
shown      jobs and workers as plain data
recording  who did what, in the transaction in which it is done
carrier    which queue a job of Rota's own goes to
told       what a page says after an action
pages/     one module per page
asgi       under Starlette, FastAPI and every other ASGI server; sends news as they come
wsgi       under Flask and every other WSGI server
standalone the command `rota dashboard`

Weaknesses. Rates are known from the second look on, by this process alone. Under WSGI pages ask
every two seconds.
"""

from rota.dashboard.access import Access, Right

__all__ = ["Access", "Right"]
