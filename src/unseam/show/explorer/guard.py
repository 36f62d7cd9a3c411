"""Who may ask: a browser on this machine, from this page. Everything else is refused before it reaches the API.

A page of another site can make the browser send requests here (cross-origin), and a name it controls can be made to
point at 127.0.0.1 (DNS rebinding). So the Host must be this server's, and an Origin, if there is one, this page's.

Other users of this machine reach 127.0.0.1 too. So the address that `unseam explore` prints holds a token, as Jupyter's
does; the page is then known by a cookie, and requests with neither are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from secrets import compare_digest
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
_METHODS = ("GET", "HEAD", "POST")


def refusal(method: str, path: str, headers: Mapping[str, str], hosts: frozenset[str]) -> tuple[int, str] | None:
    """Status and reason when a request is refused, None when it may pass.

    >>> here = frozenset({"127.0.0.1:8642"})
    >>> refusal("GET", "/", {"host": "evil.example"}, here)
    (421, "host='evil.example' is not this server")
    >>> refusal("GET", "/", {"host": "127.0.0.1:8642"}, here) is None
    True
    """
    host, origin, site = (headers.get(name) for name in ("host", "origin", "sec-fetch-site"))
    if host not in hosts:
        return 421, f"host={host!r} is not this server"
    if origin is not None and origin.removeprefix("http://") not in hosts:
        return 403, f"origin={origin!r}: requests from other sites are refused"
    if site not in (None, "same-origin", "none") and not followed_link(method, path, headers):
        return 403, f"sec-fetch-site={site!r}: requests from other sites are refused"
    if method not in _METHODS:
        return 405, f"method={method!r} is not allowed"
    return None


def followed_link(method: str, path: str, headers: Mapping[str, str]) -> bool:
    """Opening the page itself by a link someone shared; it gives nothing away, and cannot be framed."""
    to_page = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return method == "GET" and path == "/" and to_page


class Guard:
    """Refuse strangers, and send every answer with the policy."""

    def __init__(self, app: ASGIApp, port: int, token: str = "") -> None:
        self.app, self.token, self.cookie = app, token, f"unseam-{port}"
        self.hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the server speaks no web sockets
            return

        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                answer = MutableHeaders(scope=message)
                answer.update(HEADERS)
                if by_address and found is None:
                    answer.append("set-cookie", f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict")
            await send(message)

        headers = Headers(scope=scope)
        token_in_url = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        by_address = bool(self.token) and compare_digest(token_in_url.encode(), self.token.encode())
        known = not self.token or by_address or self._has_cookie(headers)
        found = refusal(scope["method"], scope["path"], headers, self.hosts)
        if len(headers.getlist("host")) > 1:
            found = 400, "more than one Host header"
        if found is None and not known:
            found = 403, "open the address that `unseam explore` printed: it holds a token, which this request lacks"
        app = PlainTextResponse(found[1], found[0]) if found else self.app
        try:
            await app(scope, receive, guarded)
        except Exception:  # a bug: its traceback is for the terminal, the answer has the policy too
            if not started:
                await PlainTextResponse("the explorer failed; its terminal says why", 500)(scope, receive, guarded)
            raise

    def _has_cookie(self, headers: Headers) -> bool:
        """Whether the request comes from a page that was opened with the token."""
        try:
            sent = SimpleCookie("; ".join(headers.getlist("cookie"))).get(self.cookie)
        except CookieError:
            return False
        return sent is not None and compare_digest(sent.value.encode(), self.token.encode())
