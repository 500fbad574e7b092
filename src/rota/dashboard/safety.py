"""What keeps a page safe in a browser: the headers of every answer, and who may ask for changes.

There are no cookies and no tokens. A browser says itself where a request comes from:
`Sec-Fetch-Site` over https and to localhost, and `Origin` with each request that changes something.
A program sends `Sec-Fetch-Site: same-origin`.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No script and no style that is not a file of the dashboard's own, and no frame around it."""

HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    # Not no-referrer: browsers would send `Origin: null` then.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "vary": "Accept",
}
"""On every answer; a file's own `cache-control` comes before this one."""


def same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a request comes from a page of this host; names of headers are in small letters."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin, host = headers.get("origin"), headers.get("host")
    return bool(origin and host) and urlsplit(str(origin)).netloc.lower() == str(host).lower()
